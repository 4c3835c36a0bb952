package instance

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const goldenHeader = `# Every EC2 instance type of the embedded catalog as a node of an AL2023 class with default settings, one per line:
# image, digest of its labels, capacity | allocatable | volumes of ebs.csi.aws.com, and whether it is special; or why the
# class does not sell it. cpu in millicores, memory in MiB, storage in bytes. Zones and prices are not part of it: each
# type is taken to be sold in one zone.
#
# Reviewed against known nodes: m5.large 1930m, 6903 MiB and 29 pods; c6g.medium 1392 MiB and 8 pods; p4d.24xlarge with
# pods for the 15 interfaces of its first network card only. go test -update writes it again: read the difference.
`

// Every type of the catalog has the labels, capacity and allocatable amounts in the reviewed golden file.
func TestGolden(t *testing.T) {
	types := sold(catalog.Load().Types, "us-east-1a")
	typeSet := typeSetOf(t, types, al2023("us-east-1a"), nil)
	excluded := typeSet.Excluded()
	byName := map[string]*cloud.InstanceType{}
	catalog := typeSet.Catalog(freeMarket())
	for i := range catalog {
		byName[catalog[i].Name] = &catalog[i]
	}
	var text strings.Builder
	text.WriteString(goldenHeader)
	for i := range types {
		name := types[i].Name
		if it := byName[name]; it != nil {
			fmt.Fprintf(&text, "%s %s\n", name, describe(it, typeSet.Image(name)))
		} else {
			fmt.Fprintf(&text, "%s -- %s\n", name, excluded[name])
		}
	}
	const file = "testdata/types.golden"
	if *update {
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(text.String(), "\n")); diff != "" {
		t.Errorf("-want +got (go test -update writes it):\n%s", diff)
	}
	if n := strings.Count(text.String(), "\n") - strings.Count(goldenHeader, "\n"); n != 1373 {
		t.Errorf("%d lines, want one for each of 1373 types", n)
	}
}

func describe(it *cloud.InstanceType, image string) string {
	allocatable := it.Allocatable()
	text := fmt.Sprintf("%s %s cpu=%d memory=%d pods=%d storage=%d", image, digest(it.Requirements), it.Capacity[cpu],
		it.Capacity[memory]/miB, it.Capacity[pods], it.Capacity[ephemeralStorage])
	for _, name := range slices.Sorted(maps.Keys(it.Capacity)) {
		if strings.Contains(name, "/") {
			text += fmt.Sprintf(" %s=%d", name, it.Capacity[name])
		}
	}
	text += fmt.Sprintf(" | cpu=%d memory=%d storage=%d | %d", allocatable[cpu], allocatable[memory]/miB,
		allocatable[ephemeralStorage], it.AttachLimits[EBSDriver])
	if it.Special {
		text += " special"
	}
	return text
}

// digest returns a hash of labels. Equal labels have equal digests.
func digest(requirements []cloud.Requirement) string {
	var lines []string
	for _, r := range requirements {
		lines = append(lines, fmt.Sprint(r.Key, " ", r.Operator, " ", r.Values))
	}
	slices.Sort(lines)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(lines, "\n"))))[:8]
}

// sold copies types. Each copy is offered in the given zones and nowhere else.
func sold(types []catalog.Type, zones ...string) []catalog.Type {
	copied := slices.Clone(types)
	for i := range copied {
		copied[i].Zones = zones
	}
	return copied
}

// al2023 returns a class with the images of the alias al2023 and a subnet in each zone.
func al2023(zones ...string) *Class {
	requires := func(arch string, variant ...cloud.Requirement) []cloud.Requirement {
		return append(variant, cloud.Requirement{Key: "kubernetes.io/arch", Operator: "In", Values: []string{arch}})
	}
	gpus := func(operator string) cloud.Requirement {
		return cloud.Requirement{Key: awsv1.LabelInstanceGPUCount, Operator: operator}
	}
	accelerators := func(operator string) cloud.Requirement {
		return cloud.Requirement{Key: awsv1.LabelInstanceAcceleratorCount, Operator: operator}
	}
	class := &Class{
		Name: "default", Family: awsv1.FamilyAL2023,
		Images: []Image{
			{ID: "ami-arm", Requirements: requires("arm64", gpus("DoesNotExist"), accelerators("DoesNotExist"))},
			{ID: "ami-amd", Requirements: requires("amd64", gpus("DoesNotExist"), accelerators("DoesNotExist"))},
			{ID: "ami-arm-nvidia", Requirements: requires("arm64", gpus("Exists"))},
			{ID: "ami-amd-nvidia", Requirements: requires("amd64", gpus("Exists"))},
			{ID: "ami-neuron", Requirements: requires("amd64", accelerators("Exists"))},
		},
	}
	for i, zone := range zones {
		class.Subnets = append(class.Subnets, Subnet{ID: fmt.Sprintf("subnet-%d", i), Zone: zone, ZoneID: "use1-az" + fmt.Sprint(i)})
	}
	return class
}

func defaults() *Settings { return &Settings{Region: "us-east-1", MemoryOverheadPercent: 0.075} }

func typeSetOf(t *testing.T, types []catalog.Type, class *Class, seen Seen) *TypeSet {
	t.Helper()
	typeSet, err := NewTypeSet(types, class, defaults(), seen)
	if err != nil {
		t.Fatal(err)
	}
	return typeSet
}

// freeMarket returns a market in which everything costs a dollar and is available.
func freeMarket() *Market {
	return &Market{
		OnDemand:    func(string) (float64, bool) { return 1, true },
		Spot:        func(string, string) (float64, bool) { return 0.5, true },
		Unavailable: func(Offer) time.Time { return time.Time{} },
	}
}

// known returns a copy of a type of the catalog.
func known(t *testing.T, name string) *catalog.Type {
	t.Helper()
	it, found := catalog.Load().Type(name)
	if !found {
		t.Fatalf("the catalog has no %s", name)
	}
	copied := *it
	return &copied
}
