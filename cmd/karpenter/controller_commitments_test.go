package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/cluster/pricerule"
)

// TestPriceRules joins rules of the file with those of the provider, in whichever order they arrive.
func TestPriceRules(t *testing.T) {
	var p priceRules
	applied := ""
	apply := func(rules []pricerule.Rule) error {
		var names []string
		for _, r := range rules {
			if r.Name == "bad" {
				return errors.New("bad")
			}
			names = append(names, r.Name+strings.Repeat("'", len(r.Families)))
		}
		applied = strings.Join(names, " ")
		return nil
	}
	expect := func(want string) {
		t.Helper()
		if applied != want {
			t.Errorf("applied %q, want %q", applied, want)
		}
	}
	p.ofCloud([]pricerule.Rule{{Name: "ri-a"}, {Name: "ri-b"}})
	if err := p.start(apply, logr.Discard()); err != nil {
		t.Fatal(err)
	}
	expect("ri-a ri-b")
	if err := p.ofFile([]pricerule.Rule{{Name: "own"}, {Name: "ri-b", Families: []string{"b"}}}); err != nil {
		t.Fatal(err)
	}
	expect("own ri-b' ri-a")
	if err := p.ofFile([]pricerule.Rule{{Name: "bad"}}); err == nil {
		t.Error("an invalid rule is no error")
	}
	p.ofCloud([]pricerule.Rule{{Name: "ri-c"}})
	expect("own ri-b' ri-c")
	p.ofCloud([]pricerule.Rule{{Name: "bad"}})
	expect("own ri-b' ri-c")
}
