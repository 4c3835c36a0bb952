package explain

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestMisspelled checks which requirements look misspelled although types remain, and which do not: labels of one's own,
// and values that differ by region.
func TestMisspelled(t *testing.T) {
	const arch, cpu = "kubernetes.io/arch", "karpenter.k8s.aws/instance-cpu"
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	one := func(name, processor, cpus string) model.InstanceType {
		return model.InstanceType{Name: name, Offerings: []model.Offering{{Zone: "us-east-1a", CapacityType: "spot"},
			{Zone: "us-east-1b", CapacityType: "on-demand"}},
			Requirements: []label.Requirement{in(model.LabelType, name), in(arch, processor), in(cpu, cpus)}}
	}
	catalog := &model.Catalog{
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true, arch: true, cpu: true},
		Types:     []model.InstanceType{one("m5.large", "amd64", "2"), one("m6g.large", "arm64", "16"), one("c5.2xlarge", "amd64", "8")}}
	for name, c := range map[string]struct {
		r    label.Requirement
		want string
	}{
		"known values": {in(arch, "amd64", "arm64"), ""},
		"swapped digits": {in(arch, "amd64", "arm46"),
			"value arm46 of requirement kubernetes.io/arch matches no instance type: did you mean arm64?"},
		"beside the right one": {in(arch, "amd64", "arm64", "arm46"), ""},
		"older key": {in("beta.kubernetes.io/arch", "amd64", "arm46"),
			"value arm46 of requirement beta.kubernetes.io/arch matches no instance type: did you mean arm64?"},
		"other processor": {in(arch, "amd64", "s390x"), ""},
		"excluded":        {label.Requirement{Key: arch, Operator: label.NotIn, Values: []string{"arm46"}}, ""},
		"offering": {in(model.LabelCapacityType, "on-demand", "spott"),
			"value spott of requirement karpenter.sh/capacity-type matches no instance type: did you mean spot?"},
		"zone of the region": {in(model.LabelZone, "us-east-1a", "us-east-1f"), ""},
		"zone": {in(model.LabelZone, "us-east-1a", "us-esat-1b"),
			"value us-esat-1b of requirement topology.kubernetes.io/zone matches no instance type: did you mean us-east-1b?"},
		"size": {in(model.LabelType, "m5.large", "c5.2xlage"),
			"value c5.2xlage of requirement node.kubernetes.io/instance-type matches no instance type: did you mean c5.2xlarge?"},
		"family elsewhere": {in(model.LabelType, "m5.large", "m6gd.large"), ""},
		"number":           {in(cpu, "2", "6"), ""},
		"key": {in("kubernetes.io/arhc", "amd64"),
			"requirement kubernetes.io/arhc is not on a well-known label: did you mean kubernetes.io/arch?"},
		"key, other case": {in("topology.kubernetes.io/Zone", "us-east-1a"),
			"requirement topology.kubernetes.io/Zone is not on a well-known label: did you mean topology.kubernetes.io/zone?"},
		"own label":             {in("example.com/team", "a"), ""},
		"own label, same word":  {in("example.com/zone", "a"), ""},
		"own label, other word": {in("node.kubernetes.io/instance-tier", "a"), ""},
	} {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog, Requirements: []label.Requirement{c.r}})
		var want []string
		if c.want != "" {
			want = []string{c.want}
		}
		if diff := cmp.Diff(want, Misspelled(b.Snapshot(time.Time{}).Pool("p"))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
