// Package awstest provides a simulated AWS for the tests of the provider's packages: package awssim, used by the
// unmodified SDK over in-memory connections, on the virtual clock of testing/synctest.
//
//	test -- Run --> World: *testing.T, AWS (the simulator), Config and clients (the SDK), Observed (recorded calls)
//	                  |
//	                  +-- Pass advances the clock; when the test returns, everything that Run has started ends
//
// Each package adds its own subject to a World: its sources, its loops, its class. Nothing is retried, so that each
// error is visible. A test that needs the SDK's retries clears Config.Retryer.
//
// The package must not depend on the packages that use it, nor on Kubernetes clients.
package awstest

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

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// Cluster is the name of the simulated EKS cluster, and the value of the tag karpenter.sh/discovery on its network.
const Cluster = "sandbox"

// Key is the access key that signs all calls, by which the simulator identifies the caller.
const Key = "AKIDTEST"

// World is a simulated AWS for one test.
type World struct {
	*testing.T
	AWS *awssim.Cloud
	// Config is the configuration of the clients, which do not retry.
	Config aws.Config
	EC2    *ec2.Client
	SSM    *ssm.Client
	EKS    *eks.Client
	IAM    *iam.Client
	// Observed are the calls that were passed to Observe.
	Observed []call.Call
}

// Run runs a test in its own world, in the simulator's region. The context ends when the test has returned.
func Run(t *testing.T, sim awssim.Options, test func(ctx context.Context, w *World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cloud, err := awssim.New(sim)
		if err != nil {
			t.Fatal(err)
		}
		w := &World{T: t, AWS: cloud}
		ctx, cancel := context.WithCancel(t.Context())
		pipe, served := awssim.NewPipe(), make(chan error)
		go func() { served <- cloud.Serve(ctx, pipe) }()
		transport := pipe.HTTPClient()
		defer func() {
			transport.CloseIdleConnections()
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serving: %v", err)
			}
		}()
		w.Config = aws.Config{Region: "us-east-1", HTTPClient: transport, BaseEndpoint: aws.String(awssim.Endpoint),
			Credentials: credentials.NewStaticCredentialsProvider(Key, "secret", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
		if sim.Region != "" {
			w.Config.Region = sim.Region
		}
		w.EC2, w.SSM, w.EKS, w.IAM = ec2.NewFromConfig(w.Config), ssm.NewFromConfig(w.Config), eks.NewFromConfig(w.Config), iam.NewFromConfig(w.Config)
		test(ctx, w)
	})
}

// Must fails the test if err is not nil.
func (w *World) Must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// Pass advances the clock. All events that are due have run when it returns.
func (w *World) Pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

// Observe records a call.
func (w *World) Observe(c call.Call) { w.Observed = append(w.Observed, c) }

// Count returns the number of recorded calls of an operation.
func (w *World) Count(operation string) int {
	n := 0
	for _, c := range w.Observed {
		if c.Operation == operation {
			n++
		}
	}
	return n
}

// Asked is Count, and clears the recorded calls: it counts the calls of an operation since the last use of Asked.
func (w *World) Asked(operation string) int {
	n := w.Count(operation)
	w.Observed = nil
	return n
}

// Class returns the class "default" of the simulated cluster, with its role, network and the newest AL2023, as modified
// by change, which may be nil.
func Class(change func(*awsv1.EC2NodeClass)) *awsv1.EC2NodeClass {
	ours := map[string]string{"karpenter.sh/discovery": Cluster}
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-1", Generation: 1}}
	class.Spec.Role = "KarpenterNodeRole-" + Cluster
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: ours}}
	class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: ours}}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	if change != nil {
		change(class)
	}
	return class
}
