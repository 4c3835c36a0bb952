package class

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// world is a class in an API, a simulated AWS, and the reconciler between them on a virtual clock.
type world struct {
	*testing.T
	*Reconciler
	aws       *awssim.Cloud
	iam       *iam.Client
	ec2       *ec2.Client
	calls     []discovery.Call
	events    []string
	templates []string // classes whose templates were deleted
	bytes     map[string]int
}

const name = "default"

func within(t *testing.T, sim awssim.Options, test func(ctx context.Context, w *world), objects ...client.Object) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sim.Cluster.CA, sim.Limits = "PEM", map[string]awssim.Limit{}
		simulated, err := awssim.New(sim)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, aws: simulated}
		ctx, cancel := context.WithCancel(t.Context())
		pipe, served := awssim.NewPipe(), make(chan error)
		go func() { served <- simulated.Serve(ctx, pipe) }()
		transport := pipe.HTTPClient()
		defer func() {
			transport.CloseIdleConnections()
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serving: %v", err)
			}
		}()
		cfg := aws.Config{Region: "us-east-1", HTTPClient: transport, BaseEndpoint: aws.String(awssim.Endpoint),
			Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
		w.ec2, w.iam = ec2.NewFromConfig(cfg), iam.NewFromConfig(cfg)
		w.wire(cfg, objects)
		test(ctx, w)
	})
}

func (w *world) wire(cfg aws.Config, objects []client.Object) {
	scheme := runtime.NewScheme()
	w.must(awsv1.AddToScheme(scheme))
	w.must(karpv1.AddToScheme(scheme))
	sources, err := discovery.New(discovery.Clients{EC2: w.ec2, SSM: ssm.NewFromConfig(cfg), EKS: eks.NewFromConfig(cfg), IAM: w.iam}, discovery.Kubernetes{FromEKS: true},
		discovery.Options{Cluster: "sandbox", Region: "us-east-1", Observe: func(c discovery.Call) { w.calls = append(w.calls, c) }})
	w.must(err)
	w.bytes = map[string]int{}
	w.Reconciler = &Reconciler{
		UserData: func(class string, bytes int) { w.bytes[class] = bytes },
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&awsv1.EC2NodeClass{}).WithObjects(objects...).Build(),
		Now:      time.Now, Sources: sources, DryRun: &DryRun{EC2: w.ec2, Calls: sources.Calls, Cluster: "sandbox"},
		DeleteTemplates: func(_ context.Context, class string) error { w.templates = append(w.templates, class); return nil },
		Emit:            func(_ *awsv1.EC2NodeClass, reason, message string) { w.events = append(w.events, reason+": "+message) },
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// pass lets time go by.
func (w *world) pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// reconcile works on the class once and returns it as it is then.
func (w *world) reconcile(ctx context.Context) (*awsv1.EC2NodeClass, ctrl.Result, error) {
	w.Helper()
	result, failed := w.Reconcile(ctx, requestFor(name))
	class := &awsv1.EC2NodeClass{}
	if err := w.Client.Get(ctx, client.ObjectKey{Name: name}, class); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	return class, result, failed
}

// reconciled is reconcile that must not fail.
func (w *world) reconciled(ctx context.Context) *awsv1.EC2NodeClass {
	w.Helper()
	class, _, err := w.reconcile(ctx)
	w.must(err)
	return class
}

// asked is how often an operation was called since anything was asked.
func (w *world) asked(operation string) int {
	n := 0
	for _, call := range w.calls {
		if call.Operation == operation {
			n++
		}
	}
	return n
}

func classWith(change func(*awsv1.EC2NodeClass)) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-1", Generation: 1}}
	discoverable := map[string]string{"karpenter.sh/discovery": "sandbox"}
	class.Spec.Role = "KarpenterNodeRole-sandbox"
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: discoverable}}
	class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: discoverable}}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	if change != nil {
		change(class)
	}
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
	c := class.StatusConditions().Get(condition)
	if got := string(c.Status) + " " + c.Reason; got != want {
		t.Errorf("%s: %s is %s (%s), want %s", when, condition, got, c.Message, want)
	}
}
