package class

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// world is a class in an API, a simulated AWS that does not throttle, and the reconciler for both.
type world struct {
	*awstest.World
	*Reconciler
	events    []string
	templates []string // classes whose templates were deleted
	bytes     map[string]int
	cni       discovery.CNI
}

const name = "default"

func within(t *testing.T, sim awssim.Options, test func(ctx context.Context, w *world), objects ...client.Object) {
	t.Helper()
	sim.Cluster.CA, sim.Limits = "PEM", map[string]awssim.Limit{}
	awstest.Run(t, sim, func(ctx context.Context, aws *awstest.World) {
		w := &world{World: aws}
		w.wire(objects)
		test(ctx, w)
	})
}

func (w *world) wire(objects []client.Object) {
	scheme := runtime.NewScheme()
	w.Must(awsv1.AddToScheme(scheme))
	w.Must(karpv1.AddToScheme(scheme))
	sources, err := discovery.New(discovery.Clients{EC2: w.EC2, SSM: w.SSM, EKS: w.EKS, IAM: w.IAM}, discovery.Kubernetes{FromEKS: true,
		CNI: func(context.Context) (discovery.CNI, error) { return w.cni, nil }},
		discovery.Options{Cluster: awstest.Cluster, Region: "us-east-1", Observe: w.Observe})
	w.Must(err)
	w.bytes = map[string]int{}
	w.Reconciler = &Reconciler{
		UserData: func(class string, bytes int) { w.bytes[class] = bytes },
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&awsv1.EC2NodeClass{}).WithObjects(objects...).Build(),
		Now:      time.Now, Sources: sources, DryRun: &DryRun{EC2: w.EC2, Calls: sources.Calls, Cluster: awstest.Cluster},
		DeleteTemplates: func(_ context.Context, class string) error { w.templates = append(w.templates, class); return nil },
		Emit:            func(_ *awsv1.EC2NodeClass, reason, message string) { w.events = append(w.events, reason+": "+message) },
	}
}

// reconcile reconciles the class once and returns its new state.
func (w *world) reconcile(ctx context.Context) (*awsv1.EC2NodeClass, ctrl.Result, error) {
	w.Helper()
	result, failed := w.Reconcile(ctx, requestFor(name))
	class := &awsv1.EC2NodeClass{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, class); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return class, result, failed
}

// reconciled is reconcile without an error.
func (w *world) reconciled(ctx context.Context) *awsv1.EC2NodeClass {
	w.Helper()
	class, _, err := w.reconcile(ctx)
	w.Must(err)
	return class
}

func claimOf(name, class string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: class}
	return claim
}

// expect checks a condition: status and reason.
func expect(t *testing.T, when string, class *awsv1.EC2NodeClass, condition, want string) {
	t.Helper()
	c := class.Condition(condition)
	if got := string(c.Status) + " " + c.Reason; got != want {
		t.Errorf("%s: %s is %s (%s), want %s", when, condition, got, c.Message, want)
	}
}
