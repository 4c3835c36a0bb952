package explain

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestNoTypes covers pools whose own requirements leave no instance type: the text contains the requirement and a
// suggestion.
func TestNoTypes(t *testing.T) {
	const arch, family = "kubernetes.io/arch", "karpenter.k8s.aws/instance-family"
	in := func(key string, values ...string) label.Requirement {
		return label.Requirement{Key: key, Operator: label.In, Values: values}
	}
	one := func(name, of, processor string) model.InstanceType {
		return model.InstanceType{Name: name, Offerings: []model.Offering{{Zone: "us-east-1a", CapacityType: "spot"},
			{Zone: "us-east-1b", CapacityType: "spot"}}, Requirements: []label.Requirement{in(model.LabelType, name),
			in(family, of), in(arch, processor)}}
	}
	catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelType: true, family: true, arch: true},
		Types: []model.InstanceType{one("m5.large", "m5", "amd64"), one("m6g.large", "m6g", "arm64"),
			one("g3.8xlarge", "g3", "amd64"), one("c5.xlarge", "c5", "amd64")}}
	for _, c := range []struct {
		name string
		asks []label.Requirement
		want string
	}{
		{"types are left", []label.Requirement{in(arch, "amd64")}, ""},
		{"a letter is missing", []label.Requirement{in(model.LabelType, "m5.lrge")},
			"the pool's own requirement node.kubernetes.io/instance-type In [m5.lrge] matches none of 4 instance types; did you mean m5.large?"},
		{"a letter is swapped", []label.Requirement{in(model.LabelType, "5m.large")},
			"the pool's own requirement node.kubernetes.io/instance-type In [5m.large] matches none of 4 instance types; did you mean m5.large?"},
		{"types that are gone", []label.Requirement{in(model.LabelType, "p3.8xlarge", "p3.16xlarge")},
			"the pool's own requirement node.kubernetes.io/instance-type In [p3.8xlarge p3.16xlarge] matches none of 4 instance types; no instance type of the family p3 is available here"},
		{"another processor", []label.Requirement{in(arch, "s390x")},
			"the pool's own requirement kubernetes.io/arch In [s390x] matches none of 4 instance types; instance types have amd64 and arm64"},
		{"a short value is no slip", []label.Requirement{in(family, "p3")},
			"the pool's own requirement karpenter.k8s.aws/instance-family In [p3] matches none of 4 instance types; instance types have c5, g3, m5 and m6g"},
		{"two that exclude each other", []label.Requirement{in(arch, "arm64"), in(family, "c5", "m5")},
			"the pool's own requirement karpenter.k8s.aws/instance-family In [c5 m5] matches none of the 1 instance type that its other requirements match of 4"},
		{"the one that leaves none by itself counts",
			[]label.Requirement{in(family, "m6g"), in(arch, "amd64", "arm64"), in(model.LabelType, "m9.large")},
			"the pool's own requirement node.kubernetes.io/instance-type In [m9.large] matches none of 4 instance types; no instance type of the family m9 is available here"},
		{"a zone that nothing is in", []label.Requirement{in(model.LabelZone, "us-east-9z")},
			"the pool's own requirement topology.kubernetes.io/zone In [us-east-9z] matches none of 4 instance types; did you mean us-east-1a?"},
		{"a zone of another region", []label.Requirement{in(arch, "amd64"), in(model.LabelZone, "eu-central-1c")},
			"the pool's own requirement topology.kubernetes.io/zone In [eu-central-1c] matches none of 4 instance types; instance types have us-east-1a and us-east-1b"},
		{"one zone of two", []label.Requirement{in(model.LabelZone, "us-east-9z", "us-east-1b")}, ""},
		{"a capacity type that nothing has", []label.Requirement{in(model.LabelCapacityType, "reserved")},
			"the pool's own requirement karpenter.sh/capacity-type In [reserved] matches none of 4 instance types; instance types have spot"},
		{"one capacity type of two", []label.Requirement{in(model.LabelCapacityType, "reserved", "spot")}, ""},
		{"not a list", []label.Requirement{{Key: arch, Operator: label.DoesNotExist}},
			"the pool's own requirement kubernetes.io/arch DoesNotExist matches none of 4 instance types"},
	} {
		b := model.NewBuilder()
		b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog, Requirements: c.asks})
		snap := b.Snapshot(time.Time{})
		if got := NoTypes(snap, snap.Pools[0]); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	for name, want := range map[string]string{"defalt": "default", "default": "", "explian": "explain", "x": "",
		"dcotor": "doctor", "p3.2xlarge": "", "m5.2xlrge": "m5.2xlarge"} {
		if got := Nearest(name, []string{"doctor", "explain", "default", "p4.2xlarge", "g3.2xlarge", "m5.2xlarge"}); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
