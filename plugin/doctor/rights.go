package doctor

import "slices"

// Right is a permission that the controller needs on the API server.
type Right struct {
	Group string
	// Resource is in lower case and plural, with its subresource after a slash.
	Resource string
	Verbs    []string
	// Namespace is where the right is needed, empty for the whole cluster.
	Namespace string
	// Own means that the right is needed in the namespace of the controller's own objects, which is Namespace if it
	// is known.
	Own bool
	// Name is set if the right is about one object only.
	Name string
	// For is the purpose.
	For string
}

// Installation is the input from which rights are derived.
type Installation struct {
	// Provider is the value of --cloud-provider.
	Provider string
	// LeaseNamespace and LeaseName are those of leader election. The controller's own objects are in the same
	// namespace. Without a name there is no election.
	LeaseNamespace string
	LeaseName      string
	// Unconverted means that the webhook for older versions is disabled.
	Unconverted bool
	// Overlays means that the feature gate NodeOverlay is on.
	Overlays bool
	// Buffers means that the feature gate CapacityBuffer is on.
	Buffers bool
	// Replicas means that --proactive-scale-up is on.
	Replicas bool
}

// SwitchedOff is the service that definitions name while the controller's webhook is disabled
// (conversion.SwitchedOff).
const SwitchedOff = "karpenter-v1beta1-is-switched-off"

// KwokNamespace is the namespace of the records of the kwok provider.
const KwokNamespace = "kube-system"

// NodeLeaseNamespace is the namespace in which kubelets renew the Leases of their nodes.
const NodeLeaseNamespace = "kube-node-lease"

var (
	watch = []string{"list", "watch"}
	read  = []string{"get", "list", "watch"}
)

// Rights returns all permissions that the controller needs. Those on services and controllers are needed for default
// topology spread (--scheduler-config).
func Rights(i Installation) []Right {
	rights := []Right{
		{Group: "karpenter.sh", Resource: "nodepools", Verbs: []string{"get", "list", "watch", "create", "patch"}, For: "nodes that may be launched; the drift hash; NodePools of Provisioners"},
		{Group: "karpenter.sh", Resource: "nodepools/status", Verbs: []string{"patch"}, For: "conditions and counts"},
		{Group: "karpenter.sh", Resource: "nodeclaims", Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, For: "launch and removal of nodes"},
		{Group: "karpenter.sh", Resource: "nodeclaims/status", Verbs: []string{"patch"}, For: "conditions"},
		{Group: "karpenter.sh", Resource: "provisioners", Verbs: []string{"list", "watch", "patch"}, For: "Provisioners, which are converted to NodePools; the finalizer"},
		{Group: "karpenter.sh", Resource: "provisioners/status", Verbs: []string{"patch"}, For: "the result of their conversion"},
		{Resource: "pods", Verbs: []string{"get", "list", "watch", "delete"}, For: "scheduling; drains with a deadline"},
		{Resource: "pods/status", Verbs: []string{"patch"}, For: "nominated nodes of pods"},
		{Resource: "pods/eviction", Verbs: []string{"create"}, For: "drains"},
		{Resource: "nodes", Verbs: []string{"get", "list", "watch", "patch", "delete"}, For: "labels, taints, the finalizer; nodes without an instance"},
		{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}, For: "events for users"},
	}
	for _, mirrored := range []struct {
		group     string
		resources []string
	}{
		{"", []string{"namespaces", "persistentvolumes", "persistentvolumeclaims", "limitranges"}},
		{"node.k8s.io", []string{"runtimeclasses"}},
		{"apps", []string{"daemonsets"}},
		{"storage.k8s.io", []string{"storageclasses", "csinodes", "volumeattachments"}},
		{"policy", []string{"poddisruptionbudgets"}},
		{"", []string{"services", "replicationcontrollers"}},
		{"apps", []string{"replicasets", "statefulsets"}},
	} {
		for _, resource := range mirrored.resources {
			rights = append(rights, Right{Group: mirrored.group, Resource: resource, Verbs: watch, For: "scheduling constraints of pods"})
		}
	}
	rights = append(rights, Right{Resource: "configmaps", Verbs: []string{"get"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-global-settings", For: "settings of versions before v1"})

	rights = append(rights, Right{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get"}, Namespace: NodeLeaseNamespace, For: "the state of nodes whose instance the cloud does not find"})
	rights = append(rights, Right{Group: "autoscaling.x-k8s.io", Resource: "capacityquotas", Verbs: watch, For: "limits on nodes by label"},
		Right{Group: "autoscaling.x-k8s.io", Resource: "capacityquotas/status", Verbs: []string{"patch"}, For: "usage and conditions of CapacityQuotas"})
	if i.Overlays {
		rights = append(rights, Right{Group: "karpenter.sh", Resource: "nodeoverlays", Verbs: watch, For: "prices and capacity of instance types"},
			Right{Group: "karpenter.sh", Resource: "nodeoverlays/status", Verbs: []string{"patch"}, For: "conditions of NodeOverlays"})
	}
	if i.Replicas {
		rights = append(rights, Right{Group: "batch", Resource: "jobs", Verbs: watch, For: "pods that Jobs ask for (--proactive-scale-up)"})
	}
	if i.Buffers {
		rights = append(rights, bufferRights()...)
	}
	rights = append(rights, conversionRights(i)...)
	rights = append(rights, classRights(i)...)
	return append(rights, leaseRights(i)...)
}

// bufferRights returns those for CapacityBuffers and what they refer to.
func bufferRights() []Right {
	const referred = "what CapacityBuffers refer to"
	get := []string{"get"}
	rights := []Right{
		{Group: "autoscaling.x-k8s.io", Resource: "capacitybuffers", Verbs: watch, For: "room for pods to come"},
		{Group: "autoscaling.x-k8s.io", Resource: "capacitybuffers/status", Verbs: []string{"patch"}, For: "conditions of CapacityBuffers"},
		{Resource: "podtemplates", Verbs: get, For: referred},
		{Resource: "replicationcontrollers", Verbs: get, For: referred},
		{Resource: "resourcequotas", Verbs: []string{"list"}, For: "the number of pods of CapacityBuffers"},
		{Group: "batch", Resource: "jobs", Verbs: get, For: referred},
		{Group: "*", Resource: "*/scale", Verbs: get, For: referred},
	}
	for _, resource := range []string{"deployments", "replicasets", "statefulsets"} {
		rights = append(rights, Right{Group: "apps", Resource: resource, Verbs: get, For: referred})
	}
	return rights
}

// conversionRights returns those of the webhook for older versions of this project's kinds.
func conversionRights(i Installation) []Right {
	var rights []Right
	if !i.Unconverted {
		rights = append(rights, Right{Resource: "secrets", Verbs: []string{"get", "update"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-conversion", For: "the certificate of the conversion webhook"})
	}
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"} {
		rights = append(rights,
			Right{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"get", "watch", "patch"}, Name: name, For: "registration of the conversion webhook"},
			Right{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions/status", Verbs: []string{"patch"}, Name: name, For: "the list of stored versions"})
	}
	return rights
}

// otherClasses is the purpose of rights on the other provider's node classes.
const otherClasses = "release of objects that were created from a Provisioner"

// classRights returns those that a provider adds.
func classRights(i Installation) []Right {
	switch i.Provider {
	case "kwok":
		return []Right{
			{Group: "karpenter.kwok.sh", Resource: "kwoknodeclasses", Verbs: []string{"list", "watch", "create", "patch"}, For: "node classes; node classes of Provisioners"},
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses", Verbs: []string{"list", "patch"}, For: otherClasses},
			{Resource: "nodes", Verbs: []string{"create"}, For: "registration of simulated nodes"},
			{Resource: "configmaps", Verbs: []string{"get", "list", "create", "update", "delete"}, Namespace: KwokNamespace, For: "the records of simulated instances"},
		}
	case "aws":
		return []Right{
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses", Verbs: slices.Concat(read, []string{"create", "patch", "delete"}), For: "node classes; the drift hash and the finalizer; node classes of older objects"},
			{Group: "karpenter.k8s.aws", Resource: "awsnodetemplates", Verbs: []string{"list", "watch", "patch"}, For: "AWSNodeTemplates, which are converted to EC2NodeClasses; the finalizer"},
			{Group: "karpenter.k8s.aws", Resource: "awsnodetemplates/status", Verbs: []string{"patch"}, For: "the result of their conversion"},
			{Group: "karpenter.kwok.sh", Resource: "kwoknodeclasses", Verbs: []string{"list", "patch"}, For: otherClasses},
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses/status", Verbs: []string{"patch"}, For: "conditions and resources of a node class"},
			{Resource: "configmaps", Verbs: []string{"get", "patch"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-instance-memory", For: "the observed memory of nodes"},
			{Resource: "configmaps", Verbs: []string{"create"}, Namespace: i.LeaseNamespace, Own: true, For: "the first record of the observed memory"},
			{Resource: "services", Verbs: []string{"get"}, Namespace: "kube-system", Name: "kube-dns", For: "the address of the cluster DNS for nodes"},
		}
	}
	return nil
}

// leaseRights returns those of leader election, and none without a name.
func leaseRights(i Installation) []Right {
	if i.LeaseName == "" {
		return nil
	}
	return []Right{
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "update"}, Namespace: i.LeaseNamespace, Own: true, Name: i.LeaseName, For: "the leader election"},
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"create"}, Namespace: i.LeaseNamespace, Own: true, For: "the Lease of the first election"},
		{Resource: "events", Verbs: []string{"create", "patch"}, Namespace: i.LeaseNamespace, Own: true, For: "events of the leader election"},
	}
}
