package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// TestPriceFile: a changed file is applied, and one that is invalid or missing leaves the last rules in place.
func TestPriceFile(t *testing.T) {
	var names []string
	file := &priceFile{path: filepath.Join(t.TempDir(), "prices.yaml"), set: func(rules []pricerule.Rule) error {
		names = nil
		for _, r := range rules {
			names = append(names, r.Name)
		}
		return nil
	}}
	for _, step := range []struct {
		name, text string // "" removes the file
		changed    bool
		fails      string
		rules      string
	}{
		{"missing", "", false, "no such file", ""},
		{"first", "rules: [{name: a, factor: 0.5}]", true, "", "a"},
		{"same", "rules: [{name: a, factor: 0.5}]", false, "", "a"},
		{"invalid", "rules: [{name: b, factor: 50}]", false, "rules[0].factor: 50", "a"},
		{"removed", "", false, "no such file", "a"},
		{"second", "rules: [{name: b, factor: 0.5}, {name: c, price: 1}]", true, "", "b c"},
		{"empty", "rules: []", true, "", ""},
	} {
		os.Remove(file.path)
		if step.text != "" {
			if err := os.WriteFile(file.path, []byte(step.text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		changed, err := file.read()
		failed := ""
		if err != nil {
			failed = err.Error()
		}
		if changed != step.changed || (failed == "") != (step.fails == "") || !strings.Contains(failed, step.fails) {
			t.Errorf("%s: changed %v, error %q; want %v, %q", step.name, changed, failed, step.changed, step.fails)
		}
		if got := strings.Join(names, " "); got != step.rules {
			t.Errorf("%s: rules %q in use, want %q", step.name, got, step.rules)
		}
	}
}

// TestPriceFileAtStart: a file that is invalid at the start is logged once, and the prices are not known until it is valid.
func TestPriceFileAtStart(t *testing.T) {
	var lines []string
	log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
	var rules priceRules
	if err := rules.start(func([]pricerule.Rule) error { return nil }, log); err != nil || !rules.known() {
		t.Fatalf("without a file: error %v, known %v", err, rules.known())
	}
	file := &priceFile{path: filepath.Join(t.TempDir(), "prices.yaml"), set: rules.ofFile, log: log}
	rules.awaitFile()
	for _, step := range []struct {
		text  string
		known bool
		lines int
	}{{"rules: [{name: a, factor: 50}]", false, 1}, {"rules: [{name: a, factor: 50}]", false, 1}, {"rules: [{name: a, factor: 60}]", false, 2},
		{"rules: [{name: a, factor: 0.5}]", true, 3}, {"rules: [{name: a, factor: 50}]", true, 4}} {
		if err := os.WriteFile(file.path, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		file.follow()
		if rules.known() != step.known || len(lines) != step.lines {
			t.Errorf("%s: known %v, log %q; want %v and %d lines", step.text, rules.known(), lines, step.known, step.lines)
		}
	}
}
