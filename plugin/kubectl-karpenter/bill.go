package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// billFlags holds the flags that share the cost of a fleet among its pods.
type billFlags struct {
	by, label string
	usage     bool
}

func (f *billFlags) addBy(flags *pflag.FlagSet) {
	flags.StringVar(&f.by, "by", "", "what to share the cost by: "+orList(bill.Groupings()))
	f.addLabel(flags)
}

func (f *billFlags) addLabel(flags *pflag.FlagSet) {
	flags.StringVar(&f.label, "cost-label", "", "key of the label of pods to share the cost by, such as team")
	flags.BoolVar(&f.usage, "usage", false,
		"show what pods use (metrics.k8s.io, or PodMetrics of files) beside their requests, and what requests that fit it would save")
}

// grouping returns what to share the cost by, nil if the flags say nothing about it.
func (f *billFlags) grouping() (*bill.Grouping, error) {
	switch {
	case f.by == "" && f.label == "" && f.usage:
		return &bill.Grouping{By: bill.ByNamespace}, nil
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

// longestSizing is how long a command plans with requests that fit the usage of pods. The report plans as long as it takes.
const longestSizing = time.Minute

// rightSize adds to the bill what requests that fit the usage of pods would save.
func rightSize(ctx context.Context, b *bill.Bill, o *offline.Overview) error {
	limited, stop := context.WithTimeout(ctx, longestSizing)
	defer stop()
	sized, err := o.RightSized(limited)
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		sized = &bill.RightSized{Stopped: fmt.Sprintf(
			"not planned within %s; kubectl karpenter report --usage plans as long as it takes", longestSizing)}
	case err != nil:
		return err
	}
	b.Usage.RightSized = sized
	return nil
}
