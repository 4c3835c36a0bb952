package discovery

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
	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
)

// world is a simulated AWS and the sources, joined by the unmodified SDK in memory on a virtual clock. The SDK does not
// retry, so that each refusal is seen.
type world struct {
	*testing.T
	aws *awssim.Cloud
	*Sources
	iam   *iam.Client
	calls []Call
	// unsupported are versions that were told of.
	unsupported []string
}

func within(t *testing.T, sim awssim.Options, kubernetes Kubernetes, test func(ctx context.Context, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cloud, err := awssim.New(sim)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{T: t, aws: cloud}
		ctx, cancel := context.WithCancel(t.Context())
		pipe, served := awssim.NewPipe(), make(chan error)
		go func() { served <- cloud.Serve(ctx, pipe) }()
		client := pipe.HTTPClient()
		cfg := aws.Config{Region: "us-east-1", HTTPClient: client, BaseEndpoint: aws.String(awssim.Endpoint),
			Credentials: credentials.NewStaticCredentialsProvider("AKIDTEST", "secret", ""), Retryer: func() aws.Retryer { return aws.NopRetryer{} }}
		defer func() {
			client.CloseIdleConnections()
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serving: %v", err)
			}
		}()
		w.iam = iam.NewFromConfig(cfg)
		clients := Clients{EC2: ec2.NewFromConfig(cfg), SSM: ssm.NewFromConfig(cfg), EKS: eks.NewFromConfig(cfg), IAM: w.iam}
		w.Sources, err = New(clients, kubernetes, Options{Cluster: "sandbox", Region: "us-east-1", Observe: func(c Call) { w.calls = append(w.calls, c) },
			Unsupported: func(version string) { w.unsupported = append(w.unsupported, version) }})
		w.must(err)
		test(ctx, w)
	})
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

// asked is how often an operation was called since the last time that it was asked.
func (w *world) asked(operation string) int {
	n := 0
	for _, call := range w.calls {
		if call.Operation == operation {
			n++
		}
	}
	w.calls = nil
	return n
}

func classOf(change func(*awsv1.EC2NodeClassSpec)) *awsv1.EC2NodeClass {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "uid-1", Generation: 1}}
	class.Spec.Role = "KarpenterNodeRole-sandbox"
	class.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: discoverable}}
	class.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: discoverable}}
	class.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}}
	if change != nil {
		change(&class.Spec)
	}
	return class
}

var discoverable = map[string]string{"karpenter.sh/discovery": "sandbox"}
