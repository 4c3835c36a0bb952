package workload

import (
	"fmt"
	"strconv"
	"strings"
)

// These are the labels of the instance types of these workloads, and the well-known labels that the builders use.
const (
	labelFamily = "perf.example.com/instance-family"
	labelSize   = "perf.example.com/instance-size"
	labelCPU    = "perf.example.com/instance-cpu"
	labelGPU    = "perf.example.com/gpu-name"

	LabelZone     = "topology.kubernetes.io/zone"
	LabelHost     = "kubernetes.io/hostname"
	LabelArch     = "kubernetes.io/arch"
	LabelOS       = "kubernetes.io/os"
	LabelCapacity = "karpenter.sh/capacity-type"
	LabelType     = "node.kubernetes.io/instance-type"
	LabelPool     = "karpenter.sh/nodepool"
)

const (
	resourceGPU = "nvidia.com/gpu"
	onDemand    = "on-demand"
	spot        = "spot"
)

var (
	providerLabels = []string{labelFamily, labelSize, labelCPU, labelGPU}
	zones          = []string{"zone-a", "zone-b", "zone-c"}
)

// InstanceType is an entry of instance-types.json; allocatable is capacity less overhead. The order of the fields is
// that of the file.
type InstanceType struct {
	Arch      string            `json:"arch"`
	Capacity  map[string]string `json:"capacity"`
	Labels    map[string]string `json:"labels"`
	Name      string            `json:"name"`
	Offerings []Offering        `json:"offerings"`
	OS        []string          `json:"os"`
	Overhead  map[string]string `json:"overhead"`
}

// Offering is a zone and a capacity type in which a type is available.
type Offering struct {
	Available    bool   `json:"available"`
	CapacityType string `json:"capacityType"`
	Price        USD    `json:"price"`
	Zone         string `json:"zone"`
}

// USD is an amount of money per hour, written with the fewest digits that represent it and at least one after the
// point.
type USD float64

// MarshalJSON writes a JSON number.
func (u USD) MarshalJSON() ([]byte, error) {
	s := strconv.FormatFloat(float64(u), 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return []byte(s), nil
}

// rounded returns x rounded to the given number of decimal digits.
func rounded(x float64, digits int) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'f', digits, 64), 64)
	if err != nil {
		panic(err) // it parses its own output
	}
	return y
}

// sizes are the sizes of each family, with their number of processors.
var sizes = []struct {
	name string
	cpus int
}{
	{"large", 2}, {"xlarge", 4}, {"2xlarge", 8}, {"4xlarge", 16}, {"8xlarge", 32},
	{"12xlarge", 48}, {"16xlarge", 64}, {"24xlarge", 96}, {"32xlarge", 128}, {"48xlarge", 192},
}

// podSlots returns the maximum number of pods of a node with so many processors.
func podSlots(cpus int) int {
	switch {
	case cpus <= 2:
		return 29
	case cpus <= 8:
		return 58
	case cpus <= 48:
		return 234
	default:
		return 737
	}
}

// missing is the share of zones, and of spot offerings, in which a type is not available.
const missing = 0.04

// family is a set of ten types that differ only in size.
type family struct {
	name   string
	gib    int // per processor
	arch   string
	factor float64 // of the price
	gpus   int     // per 24 processors
}

func families(r *random, count int, gpu bool) []family {
	kinds := []struct {
		name string
		gib  int
		base float64
	}{{"c", 2, 1}, {"m", 4, 1}, {"r", 8, 1}, {"x", 16, 1.15}}
	vendors := []struct {
		name, arch string
		factor     float64
	}{{"i", "amd64", 1}, {"a", "amd64", 0.91}, {"g", "arm64", 0.80}}
	var all []family
	for generation := 4; len(all) < count; generation++ {
		for _, k := range kinds {
			for _, v := range vendors {
				age := 1.06 - float64(0.02*float64(generation-4))
				factor := rounded(k.base*v.factor*age*r.between(0.97, 0.06), 4)
				all = append(all, family{k.name + strconv.Itoa(generation) + v.name, k.gib, v.arch, factor, 0})
			}
		}
	}
	all = all[:count]
	if gpu { // they replace the last ones
		for i, f := range []family{{"g5", 4, "amd64", 1.1, 1}, {"g6", 4, "amd64", 1.1, 1}, {"p4", 4, "amd64", 1.1, 8}} {
			all[count-1-i] = f
		}
	}
	return all
}

// catalog generates count types, ten sizes to a family. The price of an hour is (processors*0.035 + GiB*0.004)
// times a factor of the family, and for spot 25 to 60% of that.
func catalog(count, seed int, gpu bool) []InstanceType {
	r := newRandom("catalogue", seed)
	var types []InstanceType
	for _, f := range families(r, (count+9)/10, gpu) {
		for _, s := range sizes {
			if len(types) < count {
				types = append(types, f.sized(r, s.name, s.cpus))
			}
		}
	}
	return types
}

func (f family) sized(r *random, size string, cpus int) InstanceType {
	gib, pods, gpus := cpus*f.gib, podSlots(cpus), f.gpus*max(1, cpus/24)
	t := InstanceType{
		Name: f.name + "." + size, Arch: f.arch, OS: []string{"linux"},
		Capacity: map[string]string{
			"cpu": strconv.Itoa(cpus), "memory": strconv.Itoa(int(float64(gib*1024)*0.95)) + "Mi",
			"pods": strconv.Itoa(pods), "ephemeral-storage": "100Gi",
		},
		Overhead: map[string]string{
			"cpu": fmt.Sprintf("%dm", 60+10*min(2, cpus-1)+cpus*5/2), "memory": fmt.Sprintf("%dMi", 355+11*pods),
		},
		Labels: map[string]string{labelFamily: f.name, labelSize: size, labelCPU: strconv.Itoa(cpus)},
	}
	if gpus > 0 {
		t.Capacity[resourceGPU] = strconv.Itoa(gpus)
		t.Labels[labelGPU] = f.name + "-gpu"
	}
	machine := float64(float64(cpus)*0.035) + float64(float64(gib)*0.004)
	price := float64(machine*f.factor) + float64(float64(gpus)*0.9)
	for _, zone := range zones {
		if r.chance(missing) {
			continue
		}
		cheap := price * r.between(0.25, 0.35)
		t.Offerings = append(t.Offerings, Offering{true, onDemand, USD(rounded(price, 5)), zone})
		if !r.chance(missing) {
			t.Offerings = append(t.Offerings, Offering{true, spot, USD(rounded(cheap, 5)), zone})
		}
	}
	if len(t.Offerings) == 0 {
		t.Offerings = []Offering{{true, onDemand, USD(rounded(price, 5)), zones[0]}}
	}
	return t
}
