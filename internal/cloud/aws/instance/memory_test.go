package instance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation"
)

func TestMemory(t *testing.T) {
	m, m5 := NewMemory(), known(t, "m5.large")
	for _, test := range []struct {
		name  string
		image string
		bytes int64
		news  bool
		least int64
	}{
		{"first", "ami-1", 7800 * miB, true, 7800 * miB},
		{"more is no news", "ami-1", 7900 * miB, false, 7800 * miB},
		{"the same is no news", "ami-1", 7800 * miB, false, 7800 * miB},
		{"less", "ami-1", 7700 * miB, true, 7700 * miB},
		{"more than the type has", "ami-1", 8193 * miB, false, 7700 * miB},
		{"less than half of what it has", "ami-1", 4095 * miB, false, 7700 * miB},
		{"none", "ami-1", 0, false, 7700 * miB},
		{"another image", "ami-2", 7750 * miB, true, 7750 * miB},
		{"no image", "", 7750 * miB, false, 0},
	} {
		version := m.Version()
		if news := m.Observe(m5, test.image, test.bytes); news != test.news || (m.Version() != version) != test.news {
			t.Errorf("%s: changed %t, version %d after %d", test.name, news, m.Version(), version)
		}
		if least, known := m.Least("m5.large", test.image); least != test.least || known != (test.least > 0) {
			t.Errorf("%s: least %d, known %t; want %d", test.name, least, known, test.least)
		}
	}
	if _, known := m.Least("m5.xlarge", "ami-1"); known {
		t.Error("a type without an observed node is known")
	}
}

// A new process restores what an earlier one has seen.
func TestMemoryRestart(t *testing.T) {
	m := NewMemory()
	m.Observe(known(t, "m5.large"), "ami-1", 7800*miB)
	m.Observe(known(t, "u-6tb1.56xlarge"), "ami-1", 6000000*miB)
	data := m.Data()
	want := map[string]string{"m5.large_ami-1": "8178892800", "u-6tb1.56xlarge_ami-1": "6291456000000"}
	if diff := cmp.Diff(want, data); diff != "" {
		t.Errorf("data -want +got:\n%s", diff)
	}
	for key := range data {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			t.Errorf("%s is not a valid key of a ConfigMap: %v", key, problems)
		}
	}
	next := NewMemory()
	next.Observe(known(t, "m5.large"), "ami-1", 7700*miB) // seen before the data was read
	if err := next.Restore(data); err != nil {
		t.Fatal(err)
	}
	want["m5.large_ami-1"] = "8074035200"
	if diff := cmp.Diff(want, next.Data()); diff != "" {
		t.Errorf("restored -want +got:\n%s", diff)
	}
	switch {
	case next.Retain(func(string) bool { return true }):
		t.Errorf("after forgetting ami-1: next.Retain(func(string) bool { return true }) is true")
	case !next.Retain(func(image string) bool { return image == "ami-2" }):
		t.Errorf(`after forgetting ami-1: next.Retain(func(image string) bool { return image == "ami-2" }) is false`)
	case len(next.Data()) != 0:
		t.Errorf("after forgetting ami-1: len(next.Data()) is %v, want 0, %v", len(next.Data()), next.Data())
	}
}

func TestMemoryRestoreDamaged(t *testing.T) {
	m := NewMemory()
	err := m.Restore(map[string]string{
		"m5.large_ami-1": "8178892800", "m5.large": "1", "_ami-1": "1", "m5.xlarge_": "1", "m5.xlarge_ami-1": "much", "m5.2xlarge_ami-1": "0",
	})
	if diff := cmp.Diff(map[string]string{"m5.large_ami-1": "8178892800"}, m.Data()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, want := range []string{`"m5.large": is "1"`, `"_ami-1"`, `"m5.xlarge_"`, `"m5.xlarge_ami-1": is "much"`,
		`"m5.2xlarge_ami-1": is "0"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %s", err, want)
		}
	}
}
