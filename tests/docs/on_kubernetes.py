"""What the page on more than one machine does on a Kubernetes cluster: no test has one."""

ON_KUBERNETES = {
    "cluster-kit image build quickstart",
    "IMAGE=$(cluster-kit image tag quickstart)",
    "docker tag $IMAGE ghcr.io/you/$IMAGE && docker push ghcr.io/you/$IMAGE",
    "pip install 'cluster-kit[kubernetes]'",
    "cluster-kit doctor quickstart --engine kubernetes",
    "cluster-kit up quickstart --engine kubernetes --set kubernetes.registry=ghcr.io/you",
    "cluster-kit status quickstart",
    "cluster-kit logs quickstart --follow",
    "cluster-kit down quickstart",
    "cluster-kit render quickstart --engine kubernetes --set kubernetes.registry=ghcr.io/you",
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
