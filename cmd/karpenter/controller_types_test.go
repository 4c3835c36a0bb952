package main

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// counted is a provider of AWS's types that counts the calls.
type counted struct {
	cloud.Provider
	types []cloud.InstanceType
	err   error
}

func (c *counted) Catalog(context.Context, *karpv1.NodePool) ([]cloud.InstanceType, error) {
	return c.types, c.err
}

func newCounted(t testing.TB) (*counted, *convert.Vocabulary) {
	class := &awsv1.EC2NodeClass{ObjectMeta: metav1.ObjectMeta{Name: "general"},
		Spec: awsv1.EC2NodeClassSpec{AMIFamily: new(awsv1.FamilyAL2023)}}
	sold, _, err := aws.NewOfflineCatalog(aws.OfflineOptions{Region: "us-east-1", MemoryOverheadPercent: 0.075}).Assumed(class, nil)
	if err != nil {
		t.Fatal(err)
	}
	return &counted{types: sold}, convert.NewVocabulary(aws.Declared(), schema.GroupKind{Group: awsv1.Group, Kind: awsv1.Kind})
}

func poolOf(generation int64, key string, values ...string) *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "p", Generation: generation}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: awsv1.Group, Kind: awsv1.Kind, Name: "general"}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{{Key: key, Operator: "In", Values: values}}
	return pool
}

// TestTypeless checks that the condition of a pool has the same words as everywhere else, and follows changes of the
// pool and of the types.
func TestTypeless(t *testing.T) {
	provider, vocabulary := newCounted(t)
	all := provider.types
	pools := newTypeless(provider, vocabulary)
	const none = "the pool's own requirement node.kubernetes.io/instance-type In [m5.lrge] matches none of "
	for i, c := range []struct {
		pool  *karpv1.NodePool
		types []cloud.InstanceType
		want  string
	}{
		{poolOf(1, "node.kubernetes.io/instance-type", "m5.lrge"), all,
			none + table.Plural(len(all), "instance type") + "; did you mean m5.large?"},
		{poolOf(1, "node.kubernetes.io/instance-type", "m5.lrge"), all[:1], none + "1 instance type"},
		{poolOf(2, "node.kubernetes.io/instance-type", "m5.large"), all, ""},
		{poolOf(3, "beta.kubernetes.io/arch", "s390x"), all,
			"the pool's own requirement kubernetes.io/arch In [s390x] matches none of " + table.Plural(len(all),
				"instance type") + "; instance types have amd64 and arm64"},
		{poolOf(4, "karpenter.k8s.aws/instance-cpu", "4"), all, ""},
		{poolOf(5, "node.kubernetes.io/instance-type", "p3.8xlarge", "p3.16xlarge"), all,
			"the pool's own requirement node.kubernetes.io/instance-type In [p3.8xlarge p3.16xlarge] matches none of " + table.Plural(len(all),
				"instance type") + "; no instance type of the family p3 is available here"},
		{poolOf(6, "example.com/team", "a"), all, ""},
		{poolOf(8, "topology.kubernetes.io/zone", "us-east-1a"), all, ""},
		{poolOf(9, "failure-domain.beta.kubernetes.io/zone", "us-west-2a"), all,
			"the pool's own requirement topology.kubernetes.io/zone In [us-west-2a] matches none of " + table.Plural(len(all),
				"instance type") + "; instance types have us-east-1a, us-east-1b, us-east-1c, us-east-1d, us-east-1e and us-east-1f"},
		{poolOf(10, "karpenter.sh/capacity-type", "reserved"), all,
			"the pool's own requirement karpenter.sh/capacity-type In [reserved] matches none of " + table.Plural(len(all),
				"instance type") + "; instance types have on-demand and spot"},
		{poolOf(11, "karpenter.sh/capacity-type", "reserved", "spot"), all, ""},
		{poolOf(7, "node.kubernetes.io/instance-type", "m5.lrge"), nil, ""},
	} {
		provider.types = c.types
		for range 2 {
			got := pools.why(t.Context(), c.pool)
			if i == 1 { // what follows there names other types
				got = got[:min(len(got), len(c.want))]
			}
			if got != c.want {
				t.Errorf("%d:\ngot  %s\nwant %s", i, got, c.want)
			}
		}
	}
	provider.err = &cloud.NoTypesError{Class: cloud.ClassRef{Kind: awsv1.Kind, Name: "general"}, Message: "spec.kubelet.maxPods is 0"}
	if got := pools.why(t.Context(), poolOf(1, "a")); got != `EC2NodeClass "general" excludes every instance type: spec.kubelet.maxPods is 0` {
		t.Errorf("a class that excludes all types: %s", got)
	}
}

// TestTypelessRemembers checks that a cached answer costs next to nothing: the condition of each pool is computed
// about every minute.
func TestTypelessRemembers(t *testing.T) {
	provider, vocabulary := newCounted(t)
	pools, pool := newTypeless(provider, vocabulary), poolOf(1, "node.kubernetes.io/instance-type", "m5.lrge")
	pools.why(t.Context(), pool)
	if n := testing.AllocsPerRun(10, func() { pools.why(t.Context(), pool) }); n > 10 {
		t.Errorf("%v allocations for an answer that is known", n)
	}
}

func BenchmarkTypeless(b *testing.B) {
	provider, vocabulary := newCounted(b)
	pool := poolOf(1, "node.kubernetes.io/instance-type", "m5.lrge")
	b.ReportAllocs()
	for b.Loop() {
		newTypeless(provider, vocabulary).why(b.Context(), pool)
	}
}
