"""Docker labels of the kit's containers and networks; nothing without them is ever touched."""

CLUSTER = "cluster-kit.cluster"
ROLE = "cluster-kit.role"
INDEX = "cluster-kit.index"
GPUS = "cluster-kit.gpus"
LEADER = "cluster-kit.leader"
PLAN = "cluster-kit.plan"
