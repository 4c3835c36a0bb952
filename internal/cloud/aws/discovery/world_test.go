package discovery

import (
	"context"
	"testing"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// world is a simulated AWS and the sources.
type world struct {
	*awstest.World
	*Sources
	// unsupported are the versions that were reported.
	unsupported []string
}

func within(t *testing.T, sim awssim.Options, kubernetes Kubernetes, test func(ctx context.Context, w *world)) {
	t.Helper()
	awstest.Run(t, sim, func(ctx context.Context, aws *awstest.World) {
		w := &world{World: aws}
		sources, err := New(Clients{EC2: w.EC2, SSM: w.SSM, EKS: w.EKS, IAM: w.IAM}, kubernetes,
			Options{Cluster: awstest.Cluster, Region: "us-east-1",
				Observe: w.Observe, Unsupported: func(version string) { w.unsupported = append(w.unsupported, version) }})
		w.Must(err)
		w.Sources = sources
		test(ctx, w)
	})
}

func classOf(change func(*awsv1.EC2NodeClassSpec)) *awsv1.EC2NodeClass {
	return awstest.Class(func(class *awsv1.EC2NodeClass) {
		if change != nil {
			change(&class.Spec)
		}
	})
}
