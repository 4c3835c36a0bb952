package kwok

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// TestOverlaidLaunch is the launch of OV-9: a claim that requests a resource of an overlay is launched as the type that
// has it by the overlay, and its machine has the resource.
func TestOverlaidLaunch(t *testing.T) {
	const fuse = "smarter-devices/fuse"
	p, err := New(Options{Client: fake.NewClientBuilder().Build()})
	if err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.LabelNodePool: "p"}}}
	claim.Spec.Resources.Requests = corev1.ResourceList{fuse: resource.MustParse("1")}
	if c, err := p.choose(cloud.NeedOf(claim), p.typesOf(claim), nil); err == nil {
		t.Fatalf("without an overlay, %s is chosen", c.Type.Name)
	}
	p.SetOverlay(func(pool string, types []cloud.InstanceType) []cloud.InstanceType {
		if pool != "p" {
			t.Errorf("types are listed for pool %q", pool)
		}
		changed := append([]cloud.InstanceType(nil), types...)
		changed[7].Capacity = map[string]int64{"cpu": 4000, "memory": 1 << 30, "pods": 10, fuse: 1}
		return changed
	})
	need := cloud.NeedOf(claim)
	c, err := p.choose(need, p.typesOf(claim), nil)
	if err != nil {
		t.Fatal(err)
	}
	record := p.newRecord(claim, need.MachineLabels(c), c, &kwokv1alpha1.KWOKNodeClass{})
	if c.Type.Name != p.types[7].Name || record.Capacity[fuse] != 1 || record.Allocatable[fuse] != 1 {
		t.Errorf("%s is launched with %v, want %s with a %s", c.Type.Name, record.Capacity, p.types[7].Name, fuse)
	}
}
