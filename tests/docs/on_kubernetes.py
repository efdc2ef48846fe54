"""Commands on the page about Kubernetes that need a real cluster, which no test has."""

ON_KUBERNETES = {
    "cluster-kit image build quickstart",
    "docker login ghcr.io",
    "docker push $(cluster-kit image tag quickstart)",
    ".venv/bin/pip install -e '.[kubernetes]'",
    "cluster-kit doctor quickstart",
    "cluster-kit up quickstart --detach",
    "cluster-kit wait quickstart",
    "cluster-kit status quickstart",
    "cluster-kit logs quickstart --follow",
    "cluster-kit render quickstart",
    "kubectl apply -f compose/quickstart/kubernetes.yaml",
    "kubectl get pods -l cluster-kit.cluster=quickstart -w",
    "kubectl logs -f job/ck-quickstart-chief",
    "kubectl wait --for=condition=complete --timeout=1h job/ck-quickstart-chief",
    "kubectl delete job,svc,cm,netpol -l cluster-kit.cluster=quickstart",
    "kubectl apply -f reader.yaml",
    "kubectl wait --for=condition=ready pod/reader",
    "kubectl cp reader:/output/quickstart ./output",
    "kubectl delete pod reader",
    "kubectl delete pvc ck-quickstart-output",
}
