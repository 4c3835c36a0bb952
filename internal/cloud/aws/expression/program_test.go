package expression

import (
	"strings"
	"testing"
	"time"
)

var large = Variables{InstanceType: "m5.large", VCPUs: 2, MemoryMiB: 8192, DefaultENIs: 3, IPsPerENI: 10, MaxPods: 29}

func TestNumber(t *testing.T) {
	for _, test := range []struct {
		text  string
		want  int64
		fails string
	}{
		{"default_enis * (ips_per_eni - 1) + 2", 29, ""},
		{"min(110, default_enis * (ips_per_eni - 1) * 16 + 2)", 110, ""},
		{"vcpus <= 2 ? 20 : max_pods", 20, ""},
		{"instance_type.startsWith('m5.') ? 1 : 2", 1, ""},
		{"{'m5.large': 7, 'm5.xlarge': 8}[instance_type]", 7, ""},
		{"double(memory_mib) * 0.05", 409, ""},
		{"max(100, 11 * max_pods + 255)", 574, ""},
		{"min(vcpus, 1.5)", 1, ""}, {"min(1.5, vcpus)", 1, ""}, {"max(1.5, vcpus)", 2, ""}, {"max(vcpus, 2.5)", 2, ""},
		{"min(1.5, 2.5) * 10.0", 15, ""}, {"max(1.5, 2.5) * 10.0", 25, ""}, {"max(vcpus, 2)", 2, ""}, {"min(vcpus, 2)", 2, ""},
		{"min(vcpus, 1.0) / 2.0 * 10.0", 5, ""}, // a double, also if the int is less
		{"max(max(1, 2), min(3, 4))", 3, ""},
		{"[1, 2, 3].exists(i, i == vcpus) ? 1 : 0", 1, ""},
		{"[1, 2.5][vcpus - 2]", 1, ""}, // of type dyn
		{"vcpus - 5", -3, ""}, {"-2.9", -2, ""}, {"2.9", 2, ""}, {"2147483647", 2147483647, ""}, {"2147483647.9", 2147483647, ""},
		{"2147483648", 0, "the result is 2147483648, want at most 2147483647"}, {"-2147483648", 0, "want at most"},
		{"1e300", 0, "the result is 1e+300"}, {"0.0 / 0.0", 0, "the result is NaN"}, {"1.0 / 0.0", 0, "the result is +Inf"},
		{"1 / (vcpus - 2)", 0, "division by zero"}, {"9223372036854775807 + vcpus", 0, "integer overflow"},
		{"{'m5.xlarge': 8}[instance_type]", 0, "no such key: m5.large"},
		{"[1, 'text'][vcpus - 1]", 0, "the result is of type string, want int or double"},
		{"[" + strings.Repeat("1,", 200) + "1].map(a, [" + strings.Repeat("1,", 200) + "1].map(b, a + b)).size()", 0, "cost limit exceeded"},
	} {
		program, err := Compile(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		got, err := program.Number(large)
		if got != test.want || (err == nil) != (test.fails == "") || err != nil && !strings.Contains(err.Error(), test.fails) {
			t.Errorf("%s: %d, %v; want %d and an error with %q", test.text, got, err, test.want, test.fails)
		}
		if again, _ := program.Number(large); again != got {
			t.Errorf("%s: %d the second time, %d the first time", test.text, again, got)
		}
	}
}

func TestCompile(t *testing.T) {
	for text, want := range map[string]string{
		"":        "it is empty",
		" \n":     "it is empty",
		"vcpus *": "1:8: Syntax error",
		"cpus * 2": "1:1: undeclared reference to 'cpus'; the variables are instance_type, vcpus, memory_mib, " +
			"default_enis, ips_per_eni, max_pods",
		"vcpus * 2.0":              "found no matching overload for '_*_' applied to '(int, double)'",
		"instance_type":            "the result is of type string, want int or double",
		"vcpus > 2":                "the result is of type bool, want int or double",
		"max(1, 2, 3)":             "found no matching overload for 'max'",
		"max(1, 'a')":              "found no matching overload for 'max'",
		strings.Repeat("1+", 2000): "expression code point size exceeds limit",
		strings.Repeat("(", 100) + "1" + strings.Repeat(")", 100): "expression recursion limit exceeded: 50",
	} {
		_, err := Compile(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.40s: %v, want one line with %q", text, err, want)
		}
	}
}

func BenchmarkNumber(b *testing.B) {
	program, err := Compile("min(110, default_enis * (ips_per_eni - 1) * 16 + 2)")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := program.Number(large); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile("min(110, default_enis * (ips_per_eni - 1) * 16 + 2)"); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDearest measures an evaluation that ends by its cost.
func BenchmarkDearest(b *testing.B) {
	list := "[" + strings.Repeat("1,", 200) + "1]"
	program, err := Compile(list + ".map(a, " + list + ".map(b, a + b)).size()")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := program.Number(large); err == nil {
			b.Fatal("no error")
		}
	}
}

// An expression is compiled once while it is used, and has its results by the variables that it names.
func TestCache(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	cache := NewCache(func() time.Time { return now })
	program := func(text string) *Program {
		t.Helper()
		p, err := cache.Program(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first, named := program("vcpus * 10"), program("instance_type == 'm5.large' ? 1 : 2")
	for range 3 {
		now = now.Add(11 * time.Hour)
		if program("vcpus * 10") != first {
			t.Fatal("the expression is compiled again 11 hours after its last use")
		}
	}
	if program("vcpus * 11"); len(cache.compiled) != 2 {
		t.Errorf("%d expressions are kept, want those of the last 12 hours", len(cache.compiled))
	}
	if _, err := cache.Program("vcpus *"); err == nil {
		t.Error("no error")
	}
	if _, err := cache.Program("vcpus *"); err == nil {
		t.Error("no error the second time")
	}
	other := large
	other.InstanceType = "m6i.large"
	for _, test := range []struct {
		program *Program
		kept    int
		want    []int64
	}{{first, 1, []int64{20, 20}}, {named, 2, []int64{1, 2}}} {
		for i, v := range []Variables{large, other} {
			if got, err := test.program.Number(v); got != test.want[i] || err != nil {
				t.Errorf("%s: %d, %v; want %d", v.InstanceType, got, err, test.want[i])
			}
		}
		if len(test.program.results) != test.kept {
			t.Errorf("%d results are kept, want %d", len(test.program.results), test.kept)
		}
	}
}
