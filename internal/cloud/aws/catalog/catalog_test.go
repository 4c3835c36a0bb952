package catalog

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The embedded file has the contents that the package comment describes.
func TestEmbedded(t *testing.T) {
	catalog := Load()
	if n := len(catalog.Types); n != 1373 {
		t.Errorf("%d types, want 1373", n)
	}
	want := Meta{
		PriceStamps: map[string]string{
			"us-east-1":     "2026-07-20T13:44:30Z",
			"us-gov-east-1": "2026-07-20T13:44:38Z",
			"us-gov-west-1": "2026-07-20T13:44:38Z",
		},
		ZoneRegions: []string{"us-east-1", "us-west-2", "eu-west-1"},
	}
	got := catalog.Meta
	got.Sources, got.Note = nil, ""
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("meta -want +got:\n%s", diff)
	}
	for _, source := range []string{"getmoto/moto 0af643a5d 2026-08-22 (Apache-2.0)",
		"aws/karpenter-provider-aws 1d927085d 2026-08-21 (Apache-2.0)"} {
		found := false
		for _, s := range catalog.Meta.Sources {
			found = found || s == source
		}
		if !found {
			t.Errorf("the sources %v do not include %s", catalog.Meta.Sources, source)
		}
	}
}

func TestUnpriced(t *testing.T) {
	none := map[string]int{} // type -> regions without a price
	for region := range Load().Meta.PriceStamps {
		for _, name := range Load().Unpriced(region) {
			none[name]++
		}
	}
	var nowhere []string
	for name, regions := range none {
		if regions == len(Load().Meta.PriceStamps) {
			nowhere = append(nowhere, name)
		}
	}
	slices.Sort(nowhere)
	want := []string{"dl2q.24xlarge", "mac-m3ultra.metal", "mac-m4.metal", "mac-m4max.metal", "mac-m4pro.metal", "mac1.metal",
		"mac2-m1ultra.metal", "mac2-m2.metal", "mac2-m2pro.metal", "mac2.metal", "p5e.48xlarge", "trn2.3xlarge",
		"trn2.48xlarge", "x8aedz.12xlarge", "x8aedz.24xlarge", "x8aedz.3xlarge", "x8aedz.6xlarge", "x8aedz.large",
		"x8aedz.metal-12xl", "x8aedz.metal-24xl", "x8aedz.xlarge"}
	if diff := cmp.Diff(want, nowhere); diff != "" {
		t.Errorf("types without any price -want +got:\n%s", diff)
	}
	if n := len(Load().Unpriced("eu-west-1")); n != len(Load().Types) {
		t.Errorf("eu-west-1 has no prices in the file, but only %d types lack one", n)
	}
}

func TestType(t *testing.T) {
	catalog := Load()
	if _, found := catalog.Type("m5.nonsense"); found {
		t.Error("m5.nonsense is found")
	}
	m5, found := catalog.Type("m5.large")
	if !found {
		t.Fatal("m5.large is not found")
	}
	want := &Type{
		Name: "m5.large", VCPUs: 2, Cores: 1, MemoryMiB: 8192, Architectures: []string{"x86_64"}, Manufacturer: "Intel",
		ClockGHz: 3.1, ENIs: 3, IPv4PerENI: 10, IPv6PerENI: 10, BranchENIs: 9, BaselineMbps: 750, CardMbps: 750,
		CardPeakMbps: 10000, ENA: true, EBSMbps: 4750, EBSBaselineMbps: 650, Hypervisor: HypervisorNitro, OldGeneration: true,
		PlacementStrategies: allStrategies,
		Usage:               []string{UsageOnDemand, UsageSpot},
		ZoneLetters:         map[string]string{"us-east-1": "abcdf", "us-west-2": "abcd", "eu-west-1": "abc"},
		Prices:              map[string]float64{"us-east-1": 0.096, "us-gov-east-1": 0.121, "us-gov-west-1": 0.121},
	}
	if diff := cmp.Diff(want, m5); diff != "" {
		t.Errorf("m5.large -want +got:\n%s", diff)
	}
	switch {
	case m5.Family() != "m5":
		t.Errorf(`m5.Family() is %v, want "m5"`, m5.Family())
	case m5.Size() != "large":
		t.Errorf(`m5.Size() is %v, want "large"`, m5.Size())
	case m5.StorageGB() != 0:
		t.Errorf("m5.StorageGB() is %v, want 0", m5.StorageGB())
	case !m5.SupportsENA():
		t.Errorf("m5.SupportsENA() is false")
	case m5.SupportsUsage(UsageCapacityBlock):
		t.Errorf("m5.SupportsUsage(UsageCapacityBlock) is true")
	}
}

func TestZonesIn(t *testing.T) {
	embedded := Type{ZoneLetters: map[string]string{"us-east-1": "fab"}}
	live := Type{ZoneLetters: embedded.ZoneLetters, Zones: []string{"us-east-1-bos-1a", "us-east-1a"}}
	for _, test := range []struct {
		name, region string
		in           Type
		want         []string
	}{
		{"letters", "us-east-1", embedded, []string{"us-east-1a", "us-east-1b", "us-east-1f"}},
		{"another region", "us-west-2", embedded, nil},
		{"live names win", "us-east-1", live, []string{"us-east-1-bos-1a", "us-east-1a"}},
		{"sold nowhere", "us-east-1", Type{ZoneLetters: embedded.ZoneLetters, Zones: []string{}}, nil},
	} {
		if diff := cmp.Diff(test.want, test.in.ZonesIn(test.region)); diff != "" {
			t.Errorf("%s -want +got:\n%s", test.name, diff)
		}
	}
}

// The interfaces of all cards add up to the number that EC2 reports for the type: the rule of ENIsOn holds for every
// type in the file.
func TestENIsOn(t *testing.T) {
	for i := range Load().Types {
		it := &Load().Types[i]
		var sum int64
		for card := range max(1, it.Cards) {
			sum += it.ENIsOn(card)
		}
		switch {
		case sum != it.ENIs:
			t.Errorf("%s: sum is %v, want %v", it.Name, sum, it.ENIs)
		case it.ENIsOn(max(1, it.Cards)) != 0:
			t.Errorf("%s: it.ENIsOn(max(1, it.Cards)) is %v, want 0, interfaces on its cards, want %d", it.Name,
				it.ENIsOn(max(1, it.Cards)), it.ENIs)
		case it.ENIsOn(-1) != 0:
			t.Errorf("%s: it.ENIsOn(-1) is %v, want 0, interfaces on its cards, want %d", it.Name, it.ENIsOn(-1), it.ENIs)
		}
	}
}

func TestPackRoundTrip(t *testing.T) {
	text, err := json.Marshal(Load())
	if err != nil {
		t.Fatal(err)
	}
	var once, twice bytes.Buffer
	for _, to := range []*bytes.Buffer{&once, &twice} {
		if err := Pack(bytes.NewReader(text), to); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(once.Bytes(), twice.Bytes()) {
		t.Error("packing the same catalog twice results in different files")
	}
	again, err := Read(&once)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Load(), again); diff != "" {
		t.Errorf("after packing -want +got:\n%s", diff)
	}
}

func TestPackRefuses(t *testing.T) {
	const good = `{"name":"a1.large","vcpu":2,"memMiB":4096,"arch":["arm64"],"cpu":"AWS","cores":2,"enis":3,"ipv4":10,"usage":["spot"]`
	file := func(types string) string {
		return `{"meta":{"priceStamps":{"us-east-1":"2026-07-20T13:44:30Z"},"zoneRegions":["us-east-1"]},"types":[` + types + `]}`
	}
	if err := Pack(strings.NewReader(file(good+"}")), &bytes.Buffer{}); err != nil {
		t.Fatalf("the valid file is rejected: %v", err)
	}
	for name, test := range map[string]struct{ in, want string }{
		"no JSON":               {"types", "decoding the catalog"},
		"unknown key":           {file(good + `,"color":"red"}`), "color"},
		"more behind":           {file(good+"}") + "{}", "something follows"},
		"twice":                 {file(good + "}," + good + "}"), "is a duplicate"},
		"no size":               {file(strings.Replace(good, "a1.large", "a1", 1) + "}"), `type "a1": name`},
		"no memory":             {file(strings.Replace(good, "4096", "0", 1) + "}"), "vcpu, memMiB: are 2 and 0"},
		"no addresses":          {file(strings.Replace(good, `"ipv4":10`, `"ipv4":0`, 1) + "}"), "enis, ipv4"},
		"cards without figure":  {file(good + `,"cards":2}`), "enisCard0"},
		"no usage":              {file(strings.Replace(good, `["spot"]`, `[]`, 1) + "}"), "arch, usage"},
		"odd hypervisor":        {file(good + `,"hypervisor":"kvm"}`), `hypervisor: is "kvm"`},
		"disks without storage": {file(good + `,"disks":2}`), "nvmeGB, diskGB, disks"},
		"zone of no region":     {file(good + `,"zones":{"eu-west-9":"a"}}`), `zones["eu-west-9"]`},
		"price of no region":    {file(good + `,"usd":{"eu-west-9":1}}`), `usd["eu-west-9"]`},
		"price of nothing":      {file(good + `,"usd":{"us-east-1":0}}`), `usd["us-east-1"]`},
		"stamp":                 {strings.Replace(file(good+"}"), "2026-07-20T13:44:30Z", "July", 1), "meta.priceStamps"},
	} {
		err := Pack(strings.NewReader(test.in), &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	if _, err := Read(strings.NewReader("not gzip")); err == nil || !strings.Contains(err.Error(), "decompressing") {
		t.Errorf("reading uncompressed data: %v", err)
	}
}

func TestComplete(t *testing.T) {
	live := []Type{{Name: "m5.large", CardMbps: 750, Zones: []string{"us-east-1a"}}, {Name: "m99.large", CardMbps: 1000},
		{Name: "m99.48xlarge", CardMbps: 1000, Cards: 4}}
	before := slices.Clone(live)
	want := []Type{
		{Name: "m5.large", CardMbps: 750, Zones: []string{"us-east-1a"}, BaselineMbps: 750, BranchENIs: 9,
			Prices: map[string]float64{"us-east-1": 0.096, "us-gov-east-1": 0.121, "us-gov-west-1": 0.121}},
		{Name: "m99.large", CardMbps: 1000, BaselineMbps: 1000},
		{Name: "m99.48xlarge", CardMbps: 1000, Cards: 4, BaselineMbps: 4000},
	}
	if diff := cmp.Diff(want, Load().Complete(live)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(before, live); diff != "" {
		t.Errorf("the given types have changed:\n%s", diff)
	}
}
