package kwok

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/cloud"
)

var update = flag.Bool("update", false, "rewrite instance_types.json from the rules")

// The embedded file equals the result of upstream's generation rules
// (https://github.com/kubernetes-sigs/karpenter/tree/main/kwok).
func TestEmbeddedFileFollowsTheRules(t *testing.T) {
	want := embeddedFile(t)
	if *update {
		if err := os.WriteFile("instance_types.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(want, embedded) {
		t.Error("instance_types.json does not follow the generation rules: run go test ./cloud/kwok -run Embedded -update")
	}
}

type (
	jsonRequirement struct {
		Key      string   `json:"key"`
		Operator string   `json:"operator"`
		Values   []string `json:"values"`
	}
	jsonOffering struct {
		Price        float64
		Available    bool
		Requirements []jsonRequirement
	}
	jsonType struct {
		Name             string            `json:"name"`
		Architecture     string            `json:"architecture"`
		OperatingSystems []string          `json:"operatingSystems"`
		Resources        map[string]string `json:"resources"`
		Offerings        []jsonOffering    `json:"offerings"`
	}
)

func embeddedFile(t *testing.T) []byte {
	var out bytes.Buffer
	separator := "[\n"
	for _, family := range []struct {
		name string
		gib  int
	}{{"c", 2}, {"m", 8}, {"s", 4}} {
		for _, cpu := range []int{1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256} {
			for _, arch := range []string{"amd64", "arm64"} {
				for _, system := range []string{"linux", "windows"} {
					line, err := json.Marshal(jsonType{
						Name:         fmt.Sprintf("%s-%dx-%s-%s", family.name, cpu, arch, system),
						Architecture: arch, OperatingSystems: []string{system},
						Resources: map[string]string{
							"cpu": strconv.Itoa(cpu), "memory": fmt.Sprintf("%dGi", cpu*family.gib),
							"ephemeral-storage": "20Gi", "pods": strconv.Itoa(min(16*cpu, 1024)),
						},
						Offerings: embeddedOfferings(cpu, family.gib),
					})
					if err != nil {
						t.Fatal(err)
					}
					out.WriteString(separator)
					out.Write(line)
					separator = ",\n"
				}
			}
		}
	}
	out.WriteString("\n]\n")
	return out.Bytes()
}

// embeddedOfferings computes prices in millionths of a dollar, so that the file contains no binary rounding errors.
func embeddedOfferings(cpu, gib int) []jsonOffering {
	bytesOfMemory := float64(cpu*gib) * (1 << 30)
	onDemand := 0.025*float64(cpu) + 0.001*bytesOfMemory/1e9
	var offerings []jsonOffering
	for _, zone := range []string{"test-zone-a", "test-zone-b", "test-zone-c", "test-zone-d"} {
		for _, bought := range []struct {
			as     string
			factor float64
		}{{"on-demand", 1}, {"spot", 0.7}} {
			price, _ := strconv.ParseFloat(strconv.FormatFloat(onDemand*bought.factor, 'f', 9, 64), 64)
			offerings = append(offerings, jsonOffering{Price: price, Available: true, Requirements: []jsonRequirement{
				{"karpenter.sh/capacity-type", "In", []string{bought.as}},
				{"topology.kubernetes.io/zone", "In", []string{zone}},
			}})
		}
	}
	return offerings
}

func TestEmbeddedTypes(t *testing.T) {
	types, labels := EmbeddedTypes()
	if len(types) != 144 {
		t.Fatalf("%d types, want 144", len(types))
	}
	if diff := cmp.Diff([]string{LabelCPU, LabelFamily, LabelMemory, LabelSize}, labels); diff != "" {
		t.Errorf("provider labels (-want +got):\n%s", diff)
	}
	var got cloud.InstanceType
	for _, candidate := range types {
		if len(candidate.Offerings) != 8 {
			t.Errorf("%s has %d offerings, want 8", candidate.Name, len(candidate.Offerings))
		}
		if candidate.Name == "m-128x-arm64-windows" {
			got = candidate
		}
	}
	got.Offerings = got.Offerings[:2]
	const onDemand = 0.025*128 + 0.001*1024*(1<<30)/1e9
	want := cloud.InstanceType{
		Name: "m-128x-arm64-windows",
		Requirements: []cloud.Requirement{
			hasValue("node.kubernetes.io/instance-type", "m-128x-arm64-windows"),
			hasValue("kubernetes.io/arch", "arm64"),
			hasValue("kubernetes.io/os", "windows"),
			hasValue("karpenter.kwok.sh/instance-cpu", "128"),
			hasValue("karpenter.kwok.sh/instance-family", "m"),
			hasValue("karpenter.kwok.sh/instance-memory", "1048576"),
			hasValue("karpenter.kwok.sh/instance-size", "128"),
			{Key: "topology.kubernetes.io/region", Operator: "DoesNotExist"},
			{Key: "node.kubernetes.io/windows-build", Operator: "DoesNotExist"},
		},
		Capacity: map[string]int64{"cpu": 128000, "memory": 1 << 40, "ephemeral-storage": 20 << 30, "pods": 1024},
		Overhead: map[string]int64{"cpu": 100, "memory": 10 << 20},
		Offerings: []cloud.Offering{
			{Zone: "test-zone-a", CapacityType: "on-demand", Price: onDemand, Available: true},
			{Zone: "test-zone-a", CapacityType: "spot", Price: onDemand * 0.7, Available: true},
		},
	}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-8 && b-a < 1e-8 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("m-128x-arm64-windows (-want +got):\n%s", diff)
	}
}
