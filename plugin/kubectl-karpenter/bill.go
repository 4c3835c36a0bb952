package main

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// billFlags holds the flags that share the cost of a fleet among its pods.
type billFlags struct{ by, label string }

func (f *billFlags) addBy(flags *pflag.FlagSet) {
	flags.StringVar(&f.by, "by", "", "what to share the cost by: "+orList(bill.Groupings()))
	f.addLabel(flags)
}

func (f *billFlags) addLabel(flags *pflag.FlagSet) {
	flags.StringVar(&f.label, "cost-label", "", "key of the label of pods to share the cost by, such as team")
}

// grouping returns what to share the cost by, nil if the flags say nothing about it.
func (f *billFlags) grouping() (*bill.Grouping, error) {
	switch {
	case f.by == "" && f.label == "":
		return nil, nil
	case f.by != "" && !slices.Contains(bill.Groupings(), f.by):
		return nil, cli.UsageErrorf("--by is %q, want %s", f.by, orList(bill.Groupings()))
	case f.by == bill.ByLabel && f.label == "":
		return nil, cli.UsageErrorf("--by label: want the key of the label, such as --cost-label team")
	case f.by != "" && f.by != bill.ByLabel && f.label != "":
		return nil, cli.UsageErrorf("--by %s and --cost-label %s: give one of them", f.by, f.label)
	case f.label == "":
		return &bill.Grouping{By: f.by}, nil
	}
	if problems := validation.IsQualifiedName(f.label); len(problems) > 0 {
		return nil, cli.UsageErrorf("--cost-label is %q, want the key of a label: %s", f.label, strings.Join(problems, "; "))
	}
	return &bill.Grouping{By: bill.ByLabel, Label: f.label}, nil
}
