package neutral

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"
)

// These are labels of the instance types.
const (
	labelFamily = "types.example.org/family"
	labelCPU    = "types.example.org/cpu"
)

var zones = []string{"zone-a", "zone-b", "zone-c"}

// InstanceType is an entry of a file of instance types.
type InstanceType struct {
	Name      string            `json:"name"`
	Arch      string            `json:"arch"`
	OS        []string          `json:"os"`
	Capacity  map[string]string `json:"capacity"`
	Overhead  map[string]string `json:"overhead"`
	Labels    map[string]string `json:"labels"`
	Offerings []Offering        `json:"offerings"`
}

// Offering is a zone and a capacity type in which an instance type is available. The price is in USD per hour.
type Offering struct {
	CapacityType     string  `json:"capacityType"`
	Zone             string  `json:"zone"`
	Price            float64 `json:"price"`
	Available        bool    `json:"available"`
	ReservationID    string  `json:"reservationID,omitempty"`
	ReservationCount int     `json:"reservationCount,omitempty"`
}

// family is a set of types that differ in size only.
type family struct {
	name, arch string
	gib        int // per processor
	factor     float64
}

var (
	families = []family{
		{"c1", "amd64", 2, 1}, {"m1", "amd64", 4, 1}, {"r1", "amd64", 8, 1},
		{"c1g", "arm64", 2, 0.82}, {"m1g", "arm64", 4, 0.82}, {"r1g", "arm64", 8, 0.82},
	}
	// moreFamilies are those that a change adds.
	moreFamilies = []family{{"c2", "amd64", 2, 1.04}, {"m2", "amd64", 4, 0.97}, {"x2g", "arm64", 16, 1.1}}
	sizes        = []int{2, 4, 8, 16, 32}
	moreSizes    = []int{48, 64}
)

// catalog returns types of all sizes. Each type has its own price in each zone.
func catalog(rng *rand.Rand, families []family, sizes []int) []InstanceType {
	var types []InstanceType
	for _, f := range families {
		factor := f.factor * between(rng, 0.96, 1.04)
		for _, cpus := range sizes {
			types = append(types, f.sized(rng, cpus, factor))
		}
	}
	return types
}

func (f family) sized(rng *rand.Rand, cpus int, factor float64) InstanceType {
	gib := cpus * f.gib
	t := InstanceType{
		Name: fmt.Sprintf("%s.%d", f.name, cpus), Arch: f.arch, OS: []string{"linux"},
		Capacity: map[string]string{"cpu": strconv.Itoa(cpus), "memory": fmt.Sprintf("%dGi", gib),
			"pods": strconv.Itoa(min(110, 29*cpus/2)), "ephemeral-storage": "100Gi"},
		Overhead: map[string]string{"cpu": fmt.Sprintf("%dm", 70+cpus*3), "memory": fmt.Sprintf("%dMi", 600+gib*20)},
		Labels:   map[string]string{labelFamily: f.name, labelCPU: strconv.Itoa(cpus)},
	}
	machine := (float64(cpus)*0.034 + float64(gib)*0.0042) * factor
	for _, zone := range zones {
		if rng.IntN(20) > 0 {
			t.Offerings = append(t.Offerings, offered(onDemand, zone, machine*between(rng, 0.98, 1.03)))
		}
		if rng.IntN(20) > 0 {
			t.Offerings = append(t.Offerings, offered(spot, zone, machine*between(rng, 0.25, 0.45)))
		}
	}
	if len(t.Offerings) == 0 {
		t.Offerings = []Offering{offered(onDemand, zones[0], machine)}
	}
	return t
}

func offered(capacityType, zone string, price float64) Offering {
	return Offering{CapacityType: capacityType, Zone: zone, Price: dollars(price), Available: true}
}

func between(rng *rand.Rand, least, most float64) float64 {
	return least + float64((most-least)*rng.Float64())
}

// dollars rounds to a hundredth of a cent.
func dollars(x float64) float64 { return math.Round(x*1e4) / 1e4 }

// cpus returns the number of processors.
func (t *InstanceType) cpus() int {
	cpus, err := strconv.Atoi(t.Capacity["cpu"])
	if err != nil {
		panic(err) // it was made from a number
	}
	return cpus
}

// amount is a number of millicores, MiB and pods.
type amount struct{ cpu, memory, pods int }

func (r amount) holds(other amount) bool {
	return other.cpu <= r.cpu && other.memory <= r.memory && other.pods <= r.pods
}

func (r amount) less(other amount) amount {
	return amount{r.cpu - other.cpu, r.memory - other.memory, r.pods - other.pods}
}

// allocatable returns what a node of the type has for pods.
func (t *InstanceType) allocatable() amount {
	left := func(name string) int64 {
		has, takes := resource.MustParse(t.Capacity[name]), resource.MustParse(t.Overhead[name])
		return has.MilliValue() - takes.MilliValue()
	}
	pods, err := strconv.Atoi(t.Capacity["pods"])
	if err != nil {
		panic(err) // it was made from a number
	}
	return amount{int(left("cpu")), int(left("memory") / 1000 >> 20), pods}
}
