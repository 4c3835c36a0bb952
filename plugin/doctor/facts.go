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

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// Facts holds the state of the installation, as far as it could be read.
type Facts struct {
	// draining holds the nodes whose drain waits for pods of a PodDisruptionBudget, by its namespace/name. Examine sets
	// it.
	draining map[string][]string
	// Now is the local time at which the API server's time was ServerTime, which is zero if it is unknown.
	Now        time.Time
	ServerTime time.Time
	// Kubernetes is the version of the API server, such as v1.36.3, empty if unknown.
	Kubernetes string
	// Unread lists what could not be read, with the reason.
	Unread []Unread
	// Denied lists rights that the controller does not have, one verb each.
	Denied []Denied
	// NoAccount is the service account of the controller, as namespace/name, if it does not exist.
	NoAccount string
	// Reviewed is the number of checked verbs.
	Reviewed int

	Expected  []*apiextensionsv1.CustomResourceDefinition
	Installed []apiextensionsv1.CustomResourceDefinition
	// Unanswered is, by definition, the API server's error about a webhook that does not convert although a
	// controller has registered it.
	Unanswered map[string]string

	Pools  []karpv1.NodePool
	Claims []karpv1.NodeClaim
	Nodes  []corev1.Node
	// Pods are the running pods.
	Pods []corev1.Pod
	// Waiting are the pods that do not run yet.
	Waiting []corev1.Pod
	PDBs    []policyv1.PodDisruptionBudget
	// Owned are the kinds of node class of the provider, and Classes their objects.
	Owned   []schema.GroupKind
	Classes []Class

	// Provisioners and Templates are the objects from before v1beta1.
	Provisioners []karpv1alpha5.Provisioner
	Templates    []awsv1alpha1.AWSNodeTemplate

	// Overlays and Buffers are the objects that the controller reads only with a feature gate; Quotas are always read.
	Overlays []karpv1alpha1.NodeOverlay
	Buffers  []autoscalingv1beta1.CapacityBuffer
	Quotas   []autoscalingv1beta1.CapacityQuota

	// Controllers are the Deployments that run the controller. Hidden means that they could not be listed.
	Controllers []Controller
	Hidden      bool
	// Providers are those whose classes and permissions are examined, as values of --cloud-provider.
	Providers []string
	// Notes list what was left out, and why.
	Notes []string

	// Leases are those with the name of the leader election.
	Leases []coordinationv1.Lease
	// NoElection means that the controller runs without leader election.
	NoElection bool

	Validating []admissionv1.ValidatingWebhookConfiguration
	Mutating   []admissionv1.MutatingWebhookConfiguration
	Services   []corev1.Service
	Slices     []discoveryv1.EndpointSlice
}

// at returns the time by the clock of timestamps in the API, as far as it is known.
func (f *Facts) at() time.Time {
	if f.ServerTime.IsZero() {
		return f.Now
	}
	return f.ServerTime
}

// Unread is something that could not be read.
type Unread struct {
	What string
	Why  error
}

// Denied is a right of which one verb is missing.
type Denied struct {
	Right
	Verb string
	// Why is the reason that the authorizer returned, if any.
	Why string
}

// Class is a node class.
type Class struct {
	Kind     schema.GroupKind
	Name     string
	Deleting *metav1.Time
	// MadeFrom is the older object from which it was created, in kubectl's format, or "".
	MadeFrom   string
	Conditions []Condition
}

// Condition is a condition of any kind of object.
type Condition struct {
	Type, Status, Reason, Message string
	Since                         time.Time
}

// Options configures what counts as a problem.
type Options struct {
	// Patience is how long the registration of a claim, and the removal of a node, may take before it counts as
	// stuck.
	Patience time.Duration
	// Skew is the tolerated difference between the clocks.
	Skew time.Duration
}
