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
		{Group: "karpenter.sh", Resource: "nodepools", Verbs: []string{"get", "list", "watch", "create", "patch"}, For: "what may be launched; the drift hash; what Provisioners have become"},
		{Group: "karpenter.sh", Resource: "nodepools/status", Verbs: []string{"patch"}, For: "conditions and counts"},
		{Group: "karpenter.sh", Resource: "nodeclaims", Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, For: "launching and removing nodes"},
		{Group: "karpenter.sh", Resource: "nodeclaims/status", Verbs: []string{"patch"}, For: "conditions"},
		{Group: "karpenter.sh", Resource: "provisioners", Verbs: []string{"list", "watch", "patch"}, For: "older manifests, which become NodePools; the finalizer"},
		{Group: "karpenter.sh", Resource: "provisioners/status", Verbs: []string{"patch"}, For: "what they have become"},
		{Resource: "pods", Verbs: []string{"get", "list", "watch", "delete"}, For: "what is planned for; drains with a deadline"},
		{Resource: "pods/status", Verbs: []string{"patch"}, For: "telling kube-scheduler where a pod was planned"},
		{Resource: "pods/eviction", Verbs: []string{"create"}, For: "drains"},
		{Resource: "nodes", Verbs: []string{"get", "list", "watch", "patch", "delete"}, For: "labels, taints, the finalizer; nodes whose machine is gone"},
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
			rights = append(rights, Right{Group: mirrored.group, Resource: resource, Verbs: watch, For: "where pods may go"})
		}
	}
	rights = append(rights, Right{Resource: "configmaps", Verbs: []string{"get"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-global-settings", For: "settings of before v1, if there are any"})

	rights = append(rights, Right{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get"}, Namespace: NodeLeaseNamespace, For: "whether a node reports whose machine the cloud cannot find"})
	rights = append(rights, conversionRights(i)...)
	rights = append(rights, classRights(i)...)
	return append(rights, leaseRights(i)...)
}

// conversionRights returns those of the webhook for older versions of this project's kinds.
func conversionRights(i Installation) []Right {
	var rights []Right
	if !i.Unconverted {
		rights = append(rights, Right{Resource: "secrets", Verbs: []string{"get", "update"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-conversion", For: "the certificate of the conversion webhook"})
	}
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"} {
		rights = append(rights,
			Right{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"get", "watch", "patch"}, Name: name, For: "telling the API server which webhook converts older versions"},
			Right{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions/status", Verbs: []string{"patch"}, Name: name, For: "telling that no older version is stored"})
	}
	return rights
}

// otherClasses is the purpose of rights on the other provider's node classes.
const otherClasses = "releasing what was created from a Provisioner, whatever the kind"

// classRights returns those that a provider adds.
func classRights(i Installation) []Right {
	switch i.Provider {
	case "kwok":
		return []Right{
			{Group: "karpenter.kwok.sh", Resource: "kwoknodeclasses", Verbs: []string{"list", "watch", "create", "patch"}, For: "how nodes are made; what Provisioners have become"},
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses", Verbs: []string{"list", "patch"}, For: otherClasses},
			{Resource: "nodes", Verbs: []string{"create"}, For: "simulated machines join by themselves"},
			{Resource: "configmaps", Verbs: []string{"get", "list", "create", "update", "delete"}, Namespace: KwokNamespace, For: "the records of simulated machines"},
		}
	case "aws":
		return []Right{
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses", Verbs: slices.Concat(read, []string{"create", "patch", "delete"}), For: "how nodes are made; the drift hash and the finalizer; what older objects have become"},
			{Group: "karpenter.k8s.aws", Resource: "awsnodetemplates", Verbs: []string{"list", "watch", "patch"}, For: "older manifests, which become EC2NodeClasses; the finalizer"},
			{Group: "karpenter.k8s.aws", Resource: "awsnodetemplates/status", Verbs: []string{"patch"}, For: "what they have become"},
			{Group: "karpenter.kwok.sh", Resource: "kwoknodeclasses", Verbs: []string{"list", "patch"}, For: otherClasses},
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses/status", Verbs: []string{"patch"}, For: "what was found for a class"},
			{Resource: "configmaps", Verbs: []string{"get", "patch"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-instance-memory", For: "the memory that nodes were seen to have"},
			{Resource: "configmaps", Verbs: []string{"create"}, Namespace: i.LeaseNamespace, Own: true, For: "the first record of it"},
			{Resource: "services", Verbs: []string{"get"}, Namespace: "kube-system", Name: "kube-dns", For: "the name server's address, which nodes are told"},
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
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "update"}, Namespace: i.LeaseNamespace, Own: true, Name: i.LeaseName, For: "electing the leader"},
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"create"}, Namespace: i.LeaseNamespace, Own: true, For: "electing the first leader"},
		{Resource: "events", Verbs: []string{"create", "patch"}, Namespace: i.LeaseNamespace, Own: true, For: "recording the leader"},
	}
}
