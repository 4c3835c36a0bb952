package doctor

import (
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// Facts are what there is, as far as it could be read.
type Facts struct {
	// Now is the time here, when ServerTime was the API server's; ServerTime is zero if it did not say.
	Now        time.Time
	ServerTime time.Time
	// Kubernetes is the version of the API server, such as v1.36.3; empty if it did not say.
	Kubernetes string
	// Unread are things that could not be looked at, with the reason.
	Unread []Unread
	// Denied are rights that the controller does not have, a verb each.
	Denied []Denied
	// Reviewed is how many verbs were asked about.
	Reviewed int

	Expected  []*apiextensionsv1.CustomResourceDefinition
	Installed []apiextensionsv1.CustomResourceDefinition
	// Unanswered is what the API server says of webhooks that do not convert although a controller has said that they do, by
	// definition.
	Unanswered map[string]string

	Pools  []karpv1.NodePool
	Claims []karpv1.NodeClaim
	Nodes  []corev1.Node
	// Pods are those that run.
	Pods []corev1.Pod
	// Waiting are those that do not run yet.
	Waiting []corev1.Pod
	PDBs    []policyv1.PodDisruptionBudget
	// Owned are the kinds of node class of the provider; Classes the objects of them.
	Owned   []schema.GroupKind
	Classes []Class

	// Provisioners and Templates are the objects of before v1beta1.
	Provisioners []karpv1alpha5.Provisioner
	Templates    []awsv1alpha1.AWSNodeTemplate

	// Controllers are the Deployments that run the controller. Hidden: they could not be looked for.
	Controllers []Controller
	Hidden      bool
	// Providers are those whose classes and rights are looked at, as --cloud-provider spells them.
	Providers []string
	// Notes are what was left out, and why.
	Notes []string

	// Leases are those of the name of leader election.
	Leases []coordinationv1.Lease
	// NoElection: the controller runs without.
	NoElection bool

	Validating []admissionv1.ValidatingWebhookConfiguration
	Mutating   []admissionv1.MutatingWebhookConfiguration
	Services   []corev1.Service
	Slices     []discoveryv1.EndpointSlice
}

// at is the time by the clock that timestamps in the API are of, as far as it is known.
func (f *Facts) at() time.Time {
	if f.ServerTime.IsZero() {
		return f.Now
	}
	return f.ServerTime
}

// Unread is something that could not be looked at.
type Unread struct {
	What string
	Why  error
}

// Denied is a right of which one verb is missing.
type Denied struct {
	Right
	Verb string
	// Why is what the authoriser said, if anything.
	Why string
}

// Class is a node class.
type Class struct {
	Kind     schema.GroupKind
	Name     string
	Deleting *metav1.Time
	// MadeFrom is the older object that it is made from, as kubectl takes it; "" for none.
	MadeFrom   string
	Conditions []Condition
}

// Condition is a condition of any kind of object.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
}

// Options say what counts as wrong.
type Options struct {
	// Patience is how long a claim may take to become a node, and a node to go, before it counts as stuck.
	Patience time.Duration
	// Skew is how far the clocks may differ.
	Skew time.Duration
}
