package kwok

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/karpenter-go/karpenter/cloud"
)

const absent = "DoesNotExist"

func TestReadListedFormat(t *testing.T) {
	types, labels, err := ReadInstanceTypes(strings.NewReader(`[
	  {"name": "m5.large", "architecture": "arm64", "operatingSystems": ["windows", "linux"],
	   "resources": {"cpu": "2", "memory": "8Gi", "pods": 29, "example.com/gpu": "1"},
	   "offerings": [
	     {"Price": 0.1, "Available": true, "Requirements": [
	       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["b"]},
	       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
	       {"key": "topology.kubernetes.io/region", "operator": "In", "values": ["r"]},
	       {"key": "example.com/rack", "operator": "In", "values": ["7"]}]},
	     {"price": 0.2, "available": false, "requirements": [
	       {"Key": "topology.kubernetes.io/zone", "Operator": "In", "Values": ["a"]},
	       {"Key": "karpenter.sh/capacity-type", "Operator": "In", "Values": ["on-demand"]},
	       {"Key": "topology.kubernetes.io/region", "Operator": "In", "Values": ["r"]}]}]},
	  {"Name": "c-1x", "Architecture": "amd64", "OperatingSystems": ["linux"],
	   "Resources": {"CPU": "1", "cpu": "1", "memory": "2Gi", "pods": "16"},
	   "Offerings": [{"Price": 0, "Requirements": [
	       {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]},
	       {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]}]}]}
	]`), "types.json")
	if err != nil {
		t.Fatal(err)
	}
	region, rack, build := "topology.kubernetes.io/region", "example.com/rack", "node.kubernetes.io/windows-build"
	overhead := map[string]int64{"cpu": 100, "memory": 10 << 20}
	want := []cloud.InstanceType{{
		Name: "c-1x",
		Requirements: []cloud.Requirement{
			hasValue("node.kubernetes.io/instance-type", "c-1x"), hasValue("kubernetes.io/arch", "amd64"), hasValue("kubernetes.io/os", "linux"),
			{Key: rack, Operator: absent}, hasValue(LabelCPU, "1"), hasValue(LabelFamily, "c"), hasValue(LabelMemory, "2048"),
			hasValue(LabelSize, "1"),
			{Key: region, Operator: absent}, {Key: build, Operator: absent},
		},
		Capacity: map[string]int64{"CPU": 1, "cpu": 1000, "memory": 2 << 30, "pods": 16}, Overhead: overhead,
		Offerings: []cloud.Offering{{Zone: "a", CapacityType: "on-demand", Available: true}},
	}, {
		Name: "m5.large",
		Requirements: []cloud.Requirement{
			hasValue("node.kubernetes.io/instance-type", "m5.large"), hasValue("kubernetes.io/arch", "arm64"),
			{Key: "kubernetes.io/os", Operator: "In", Values: []string{"linux", "windows"}},
			hasValue(LabelCPU, "2"), hasValue(LabelFamily, "m5"), hasValue(LabelMemory, "8192"), hasValue(LabelSize, "large"),
			hasValue(region, "r"), {Key: build, Operator: absent},
		},
		Capacity: map[string]int64{"cpu": 2000, "memory": 8 << 30, "pods": 29, "example.com/gpu": 1}, Overhead: overhead,
		Offerings: []cloud.Offering{
			{Zone: "a", CapacityType: "on-demand", Price: 0.2, Requirements: []cloud.Requirement{{Key: rack, Operator: absent}}},
			{Zone: "b", CapacityType: "spot", Price: 0.1, Available: true, Requirements: []cloud.Requirement{hasValue(rack, "7")}},
		},
		Special: true,
	}}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{rack, LabelCPU, LabelFamily, LabelMemory, LabelSize, region}, labels); diff != "" {
		t.Errorf("provider labels (-want +got):\n%s", diff)
	}
}

const labeled = `{"instanceTypes": [
  {"name": "p4.large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "memory": "8Gi", "pods": "29", "nvidia.com/gpu": "8"},
   "overhead": {"cpu": "75m", "memory": "674Mi"}, "labels": {"perf.example.com/family": "p4", "perf.example.com/gpu": "p4-gpu"},
   "offerings": [{"zone": "a", "capacityType": "spot", "price": 2.5, "available": true}]},
  {"name": "c4.large", "arch": "amd64", "os": ["linux"], "capacity": {"cpu": "2", "memory": "4Gi", "pods": "29"},
   "labels": {"perf.example.com/family": "c4"}, "attachLimits": {"csi.example.com": 25},
   "offerings": [{"zone": "a", "capacityType": "on-demand", "price": 0.1, "available": false}]}
]}`

func TestReadLabeledFormat(t *testing.T) {
	types, labels, err := ReadInstanceTypes(strings.NewReader(labeled), "types.json")
	if err != nil {
		t.Fatal(err)
	}
	fixed := func(name string) []cloud.Requirement {
		return []cloud.Requirement{hasValue("node.kubernetes.io/instance-type", name), hasValue("kubernetes.io/arch", "amd64"),
			hasValue("kubernetes.io/os", "linux")}
	}
	none := []cloud.Requirement{{Key: "topology.kubernetes.io/region", Operator: absent},
		{Key: "node.kubernetes.io/windows-build", Operator: absent}}
	want := []cloud.InstanceType{{
		Name: "c4.large",
		Requirements: append(append(fixed("c4.large"), hasValue("perf.example.com/family", "c4"),
			cloud.Requirement{Key: "perf.example.com/gpu", Operator: absent}), none...),
		Capacity: map[string]int64{"cpu": 2000, "memory": 4 << 30, "pods": 29}, Overhead: map[string]int64{},
		Offerings:    []cloud.Offering{{Zone: "a", CapacityType: "on-demand", Price: 0.1}},
		AttachLimits: map[string]int{"csi.example.com": 25},
	}, {
		Name: "p4.large",
		Requirements: append(append(fixed("p4.large"), hasValue("perf.example.com/family", "p4"),
			hasValue("perf.example.com/gpu", "p4-gpu")), none...),
		Capacity:  map[string]int64{"cpu": 2000, "memory": 8 << 30, "pods": 29, "nvidia.com/gpu": 8},
		Overhead:  map[string]int64{"cpu": 75, "memory": 674 << 20},
		Offerings: []cloud.Offering{{Zone: "a", CapacityType: "spot", Price: 2.5, Available: true}},
		Special:   true,
	}}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"perf.example.com/family", "perf.example.com/gpu"}, labels); diff != "" {
		t.Errorf("provider labels (-want +got):\n%s", diff)
	}
}

// Every error names the file, the entry, the field, the mistake and a valid value.
func TestReadErrors(t *testing.T) {
	replaced := func(old, by string) string {
		if !strings.Contains(labeled, old) {
			t.Fatalf("%q is not in the file to be corrupted", old)
		}
		return strings.Replace(labeled, old, by, 1)
	}
	listed := func(offering string) string {
		return `[{"name": "x", "architecture": "amd64", "operatingSystems": ["linux"],
			"resources": {"cpu": "1", "memory": "1Gi", "pods": "9"}, "offerings": [` + offering + `]}]`
	}
	const zone = `{"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["a"]}`
	for name, test := range map[string]struct {
		file string
		want []string
	}{
		"empty":        {"  ", []string{"is empty", "want a list"}},
		"neither":      {"instanceTypes: []", []string{"is no JSON list or object", "want a list"}},
		"no key":       {`{"types": []}`, []string{"without the key instanceTypes"}},
		"no types":     {`[]`, []string{"no instance types", "want at least one"}},
		"broken":       {"{\"instanceTypes\": [\n{]}", []string{"line 2, column 2", "is not JSON"}},
		"no name":      {replaced(`"name": "p4.large", `, ``), []string{"instance type 0: name: is missing", "want"}},
		"bad name":     {replaced(`p4.large`, `p4 large`), []string{`("p4 large"): name`, "alphanumeric"}},
		"same name":    {replaced(`c4.large`, `p4.large`), []string{`instance type 1 ("p4.large"): name`, "instance type 0"}},
		"bad arch":     {replaced(`amd64`, `x86`), []string{`("p4.large"): architecture: is "x86"`, "want amd64 or arm64"}},
		"no os":        {replaced(`["linux"]`, `[]`), []string{"operating systems: are missing"}},
		"bad os":       {replaced(`["linux"]`, `["li nux"]`), []string{`operating systems: are ["li nux"]`}},
		"bad quantity": {replaced(`"8Gi"`, `"8 GB"`), []string{`capacity["memory"]: is "8 GB"`, "want a quantity"}},
		"negative":     {replaced(`"75m"`, `"-75m"`), []string{`overhead["cpu"]: is "-75m"`, "zero or more"}},
		"no pods":      {replaced(`, "pods": "29"`, ``), []string{"capacity: pods is missing"}},
		"all overhead": {replaced(`"674Mi"`, `"8Gi"`), []string{"capacity: memory is missing or not greater than the overhead"}},
		"count without a reservation": {replaced(`"zone": "a"`, `"reservationCount": 1, "zone": "a"`),
			[]string{"offerings[0]: has a count", "no reservationID"}},
		"reservation on demand": {replaced(`"zone": "a"`, `"reservationID": "r", "zone": "a"`),
			[]string{"offerings[0]: has a reservation", "want capacity type reserved"}},
		"unknown key":     {replaced(`"overhead"`, `"overheads"`), []string{`unknown field "overheads"`, "want the keys"}},
		"wrong kind":      {replaced(`["linux"]`, `"linux"`), []string{"os: is a JSON string, want a list"}},
		"bad label key":   {replaced(`perf.example.com/family`, `perf.example.com/`), []string{`labels: key "perf.example.com/"`}},
		"bad label value": {replaced(`"p4-gpu"`, `"p4 gpu"`), []string{`labels["perf.example.com/gpu"]: value "p4 gpu"`}},
		"label of the type": {replaced(`perf.example.com/gpu`, `topology.kubernetes.io/zone`),
			[]string{`labels["topology.kubernetes.io/zone"]: cannot be set here`}},
		"negative limit":     {replaced(`25}`, `-1}`), []string{`attachLimits["csi.example.com"]: is -1`, "zero or more"}},
		"limit of no driver": {replaced(`"csi.example.com"`, `""`), []string{`attachLimits[""]`, "want a CSI driver"}},
		"no offerings": {replaced(`[{"zone": "a", "capacityType": "spot", "price": 2.5, "available": true}]`, `[]`),
			[]string{"offerings: are missing"}},
		"no zone": {replaced(`"zone": "a", `, ``), []string{`offerings[0]: zone is ""`, "want"}},
		"bad capacity type": {replaced(`"spot"`, `"preemptible"`),
			[]string{`offerings[0]: capacity type is "preemptible"`, "want on-demand, spot or reserved"}},
		"no price":       {replaced(`"price": 2.5, `, ``), []string{"offerings[0].price: is missing", "want USD per hour"}},
		"price as text":  {replaced(`2.5`, `"2.5"`), []string{"offerings.price: is a JSON string, want a number"}},
		"negative price": {replaced(`2.5`, `-2.5`), []string{"offerings[0].price: is -2.5"}},
		"same offering": {replaced(`"available": true}`, `"available": true}, {"zone": "a", "capacityType": "spot", "price": 1}`),
			[]string{"offerings[1]: has zone a and capacity type spot like offerings[0]"}},
		"listed, no price": {listed(`{"Requirements": [` + zone + `]}`), []string{"offerings[0].Price: is missing"}},
		"listed, operator": {listed(`{"Price": 1, "Requirements": [{"key": "a", "operator": "NotIn", "values": ["b"]}]}`),
			[]string{`offerings[0].Requirements[0]: operator: is "NotIn" for a`}},
		"listed, no key":    {listed(`{"Price": 1, "Requirements": [{"operator": "In"}]}`), []string{"key: is missing"}},
		"listed, no values": {listed(`{"Price": 1, "Requirements": [{"key": "a", "operator": "In"}]}`), []string{"values: is empty for a"}},
		"listed, two zones": {listed(`{"Price": 1, "Requirements": [` + strings.Replace(zone, `"a"`, `"a","b"`, 1) + `]}`),
			[]string{"values: has 2 values for topology.kubernetes.io/zone"}},
		"listed, no type":    {listed(`{"Price": 1, "Requirements": [` + zone + `]}`), []string{`offerings[0]: capacity type is ""`}},
		"listed, a JSON map": {`[[]]`, []string{"instance type 0: the entry: is a JSON array, want an object"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := ReadInstanceTypes(strings.NewReader(test.file), "types.json")
			if err == nil {
				t.Fatal("no error")
			}
			for _, part := range append(test.want, "types.json: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error is %q, want %q in it", err, part)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q has more than one line", err)
			}
		})
	}
	broken := errors.New("the disk is broken")
	if _, _, err := ReadInstanceTypes(iotest.ErrReader(broken), "types.json"); !errors.Is(err, broken) {
		t.Errorf("reading from a failing disk: %v", err)
	}
}

// A file with its own labels gets the labels that the provider declares in addition, and its own are declared too.
func TestDeclaredLabelsOfAFile(t *testing.T) {
	types, labels, err := ReadInstanceTypes(strings.NewReader(labeled), "types.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(Options{Client: fake.NewClientBuilder().Build(), Types: types, ProviderLabels: labels})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{LabelCPU, LabelFamily, LabelMemory, LabelSize, "perf.example.com/family", "perf.example.com/gpu"}
	if diff := cmp.Diff(want, p.Declared().WellKnown); diff != "" {
		t.Errorf("well-known labels (-want +got):\n%s", diff)
	}
	completed, err := p.Catalog(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := completed[0].Requirements[len(completed[0].Requirements)-4:]
	if diff := cmp.Diff([]cloud.Requirement{hasValue(LabelCPU, "2"), hasValue(LabelFamily, "c4"), hasValue(LabelMemory, "4096"),
		hasValue(LabelSize, "large")}, got); diff != "" {
		t.Errorf("labels of c4.large (-want +got):\n%s", diff)
	}
	if len(types[0].Requirements) != len(completed[0].Requirements)-4 {
		t.Error("the caller's types have changed")
	}
}

func TestMachineName(t *testing.T) {
	if a, b := machineName("general-abc", "1"), machineName("general-abc", "1"); a != b {
		t.Errorf("the same claim has the names %s and %s", a, b)
	}
	if a, b := machineName("general-abc", "1"), machineName("general-abc", "2"); a == b || !strings.HasPrefix(a, "kwok-general-abc-") {
		t.Errorf("two claims of one name have the names %s and %s", a, b)
	}
	for _, claim := range []string{strings.Repeat("x", 253), strings.Repeat("y", 51) + ".z"} {
		name := machineName(claim, "1")
		if len(name) > 63 || strings.Contains(name, ".-") {
			t.Errorf("the name %s is too long or invalid", name)
		}
		if machine, ok := machineOf(providerScheme + name); !ok || machine != name {
			t.Errorf("the provider ID of %s is parsed as %s", name, machine)
		}
	}
}
