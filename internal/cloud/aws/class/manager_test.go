package class

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/api/crds"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
	"github.com/karpenter-go/karpenter/internal/testing/sandboxtest"
)

// TestManager checks, with a real API server that validates writes by the schema, that a class becomes ready and is
// deleted. The claim blocks its deletion, and the deletion of the claim triggers a reconciliation of the class.
func TestManager(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	definitions, err := crds.Definitions()
	check(t, err)
	config := sandboxtest.Start(t, sandboxtest.Options{Definitions: definitions})
	scheme := runtime.NewScheme()
	check(t, awsv1.AddToScheme(scheme))
	check(t, karpv1.AddToScheme(scheme))
	api, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	check(t, err)
	reconciler := simulated(t)
	reconciler.Client = manager.GetClient()
	waits := make(chan string, 100)
	reconciler.Emit = func(_ *awsv1.EC2NodeClass, reason, _ string) { waits <- reason }
	check(t, reconciler.SetupWithManager(manager))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- manager.Start(ctx) }()
	defer func() {
		cancel()
		check(t, <-ended)
	}()

	claim := claimOf("mine", name)
	claim.Finalizers = []string{"example.com/keep"}
	claim.Spec.Requirements = []karpv1.Requirement{}
	check(t, api.Create(ctx, claim))
	class := awstest.Class(nil)
	class.ObjectMeta = metav1.ObjectMeta{Name: name}
	check(t, api.Create(ctx, class))
	until(t, "the class is ready", func() bool {
		check(t, api.Get(ctx, client.ObjectKeyFromObject(class), class))
		return class.Condition("Ready").IsTrue()
	})
	check(t, api.Delete(ctx, class))
	check(t, api.Delete(ctx, claim))
	until(t, "the class waits for its claim", func() bool { return len(waits) > 0 })
	base := claim.DeepCopy()
	claim.Finalizers = nil
	check(t, api.Patch(ctx, claim, client.MergeFrom(base)))
	until(t, "the class is gone", func() bool { return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(class), class)) })
}

// simulated returns a reconciler without a client, with a simulated AWS that is shut down with the test.
func simulated(t *testing.T) *Reconciler {
	t.Helper()
	sim, err := awssim.New(awssim.Options{Cluster: awssim.Cluster{CA: "PEM"}})
	check(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	pipe, served := awssim.NewPipe(), make(chan error)
	go func() { served <- sim.Serve(ctx, pipe) }()
	transport := pipe.HTTPClient()
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		check(t, <-served)
	})
	cfg := aws.Config{Region: "us-east-1", HTTPClient: transport, BaseEndpoint: aws.String(awssim.Endpoint),
		Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", "")}
	compute := ec2.NewFromConfig(cfg)
	sources, err := discovery.New(discovery.Clients{EC2: compute, SSM: ssm.NewFromConfig(cfg), EKS: eks.NewFromConfig(cfg),
		IAM: iam.NewFromConfig(cfg)},
		discovery.Kubernetes{FromEKS: true}, discovery.Options{Cluster: "sandbox", Region: "us-east-1"})
	check(t, err)
	return &Reconciler{
		Now: time.Now, Sources: sources, DryRun: &DryRun{EC2: compute, Calls: sources.Calls, Cluster: "sandbox"},
		DeleteTemplates: func(context.Context, string) error { return nil },
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatalf("not within a minute: %s", what)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
