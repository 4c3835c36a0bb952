package doctor

import "slices"

// Right is something that the controller asks of the API server.
type Right struct {
	Group string
	// Resource in lower case and plural, with its subresource after a slash.
	Resource string
	Verbs    []string
	// Namespace is where: empty for the whole cluster.
	Namespace string
	// Own: it is in the namespace of the controller's own objects, which Namespace is if it is known.
	Own bool
	// Name is set where the right is about one object only.
	Name string
	// For says what for.
	For string
}

// Installation is what rights depend on.
type Installation struct {
	// Provider is the value of --cloud-provider.
	Provider string
	// LeaseNamespace and LeaseName are those of leader election; the controller's own objects are in that namespace too.
	// There is no election without a name.
	LeaseNamespace string
	LeaseName      string
	// Unconverted: the webhook for older versions is switched off.
	Unconverted bool
}

// SwitchedOff is the service that definitions name while the controller's webhook is switched off (conversion.SwitchedOff).
const SwitchedOff = "karpenter-v1beta1-is-switched-off"

// KwokNamespace is where the kwok provider keeps its records.
const KwokNamespace = "kube-system"

// NodeLeaseNamespace is where kubelets renew the Leases of their nodes.
const NodeLeaseNamespace = "kube-node-lease"

var (
	watch = []string{"list", "watch"}
	read  = []string{"get", "list", "watch"}
)

// Rights are all that the controller needs. Default topology spread (--scheduler-config) needs those on services and
// controllers.
func Rights(i Installation) []Right {
	rights := []Right{
		{Group: "karpenter.sh", Resource: "nodepools", Verbs: []string{"get", "list", "watch", "create", "patch"}, For: "what may be bought; the drift hash; what Provisioners have become"},
		{Group: "karpenter.sh", Resource: "nodepools/status", Verbs: []string{"patch"}, For: "conditions and counts"},
		{Group: "karpenter.sh", Resource: "nodeclaims", Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}, For: "buying nodes and letting them go"},
		{Group: "karpenter.sh", Resource: "nodeclaims/status", Verbs: []string{"patch"}, For: "conditions"},
		{Group: "karpenter.sh", Resource: "provisioners", Verbs: []string{"list", "watch", "patch"}, For: "older manifests, which become NodePools; the finaliser"},
		{Group: "karpenter.sh", Resource: "provisioners/status", Verbs: []string{"patch"}, For: "what they have become"},
		{Resource: "pods", Verbs: []string{"get", "list", "watch", "delete"}, For: "what is planned for; drains with a deadline"},
		{Resource: "pods/status", Verbs: []string{"patch"}, For: "telling kube-scheduler where a pod was planned"},
		{Resource: "pods/eviction", Verbs: []string{"create"}, For: "drains"},
		{Resource: "nodes", Verbs: []string{"get", "list", "watch", "patch", "delete"}, For: "labels, taints, the finaliser; nodes whose machine is gone"},
		{Group: "events.k8s.io", Resource: "events", Verbs: []string{"create", "patch"}, For: "telling users"},
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

// conversionRights are those of the webhook for older versions of our kinds.
func conversionRights(i Installation) []Right {
	var rights []Right
	if !i.Unconverted {
		rights = append(rights, Right{Resource: "secrets", Verbs: []string{"get", "update"}, Namespace: i.LeaseNamespace, Own: true, Name: "karpenter-conversion", For: "the certificate of the conversion webhook"})
	}
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh", "ec2nodeclasses.karpenter.k8s.aws"} {
		rights = append(rights,
			Right{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Verbs: []string{"get", "watch", "patch"}, Name: name, For: "telling the API server who converts older versions"},
			Right{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions/status", Verbs: []string{"patch"}, Name: name, For: "telling that no older version is stored"})
	}
	return rights
}

// otherClasses is what the other provider's node classes are for.
const otherClasses = "letting go of what was made from a Provisioner, whatever the kind"

// classRights are those that a provider adds.
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
			{Group: "karpenter.k8s.aws", Resource: "ec2nodeclasses", Verbs: slices.Concat(read, []string{"create", "patch", "delete"}), For: "how nodes are made; the drift hash and the finaliser; what older objects have become"},
			{Group: "karpenter.k8s.aws", Resource: "awsnodetemplates", Verbs: []string{"list", "watch", "patch"}, For: "older manifests, which become EC2NodeClasses; the finaliser"},
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

// leaseRights are those of leader election; none without a name.
func leaseRights(i Installation) []Right {
	if i.LeaseName == "" {
		return nil
	}
	return []Right{
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"get", "update"}, Namespace: i.LeaseNamespace, Own: true, Name: i.LeaseName, For: "electing the leader"},
		{Group: "coordination.k8s.io", Resource: "leases", Verbs: []string{"create"}, Namespace: i.LeaseNamespace, Own: true, For: "electing the first leader"},
		{Resource: "events", Verbs: []string{"create", "patch"}, Namespace: i.LeaseNamespace, Own: true, For: "telling who leads"},
	}
}
