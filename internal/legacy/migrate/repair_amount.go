package migrate

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
)

// This file repairs durations, policies, budgets, numbers and amounts of pools.

var spans = regexp.MustCompile(`^([0-9]+(s|m|h))+$`)

// duration converts a number of seconds, and days and weeks, which the API does not support, to a duration.
func (r *repair) duration(path string) {
	node := r.find(path)
	value := text(node)
	if value == "" || value == karpv1.Never || spans.MatchString(value) {
		return
	}
	wanted := ""
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil && seconds >= 0 {
		wanted = span(time.Duration(seconds) * time.Second)
	} else if strings.EqualFold(value, karpv1.Never) {
		wanted = karpv1.Never
	} else if count, err := strconv.ParseInt(value[:len(value)-1], 10, 32); err == nil && count >= 0 && strings.HasSuffix(value, "d") {
		wanted = strconv.FormatInt(24*count, 10) + "h"
	} else if err == nil && count >= 0 && strings.HasSuffix(value, "w") {
		wanted = strconv.FormatInt(7*24*count, 10) + "h"
	} else if d, err := time.ParseDuration(value); err == nil && d >= 0 {
		wanted = span(d)
	}
	if wanted == "" {
		r.note(Impossible, path, "is %q, want a duration such as 30s, 5m or 720h, or Never", value)
		return
	}
	*node = yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: wanted, HeadComment: node.HeadComment,
		LineComment: node.LineComment, FootComment: node.FootComment}
	r.repaired(path, "is %s, want a duration; set to %s", value, wanted)
}

// span formats a duration in the largest unit that represents it exactly.
func span(d time.Duration) string {
	switch {
	case d == 0:
		return "0s"
	case d%time.Hour == 0:
		return strconv.FormatInt(int64(d/time.Hour), 10) + "h"
	case d%time.Minute == 0:
		return strconv.FormatInt(int64(d/time.Minute), 10) + "m"
	}
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10) + "s"
}

// policy sets the consolidation policy to its name in the object's version.
func (r *repair) policy() {
	node := r.find("spec.disruption.consolidationPolicy")
	value := text(node)
	today, renamed := names.ConsolidationPolicy(value)
	switch {
	case r.beta && value == string(karpv1.ConsolidateWhenEmptyOrUnderutilized):
		node.Value = "WhenUnderutilized" // converted back with the version
		r.note(Repaired, "spec.disruption.consolidationPolicy", "is %s, want WhenUnderutilized in v1beta1; treated as that", value)
	case !r.beta && renamed:
		node.Value = today
		r.repaired("spec.disruption.consolidationPolicy", "is %s, want %s in v1", value, today)
	case strings.EqualFold(value, string(karpv1.ConsolidateWhenEmpty)) && value != string(karpv1.ConsolidateWhenEmpty):
		node.Value = string(karpv1.ConsolidateWhenEmpty)
		r.repaired("spec.disruption.consolidationPolicy", "is %s, want %s", value, node.Value)
	}
}

// budgets repairs budgets. One with a schedule and without a duration applies at all times, which keeps more nodes.
func (r *repair) budgets() {
	list := r.find("spec.disruption.budgets")
	if list != nil && list.Kind == yaml.MappingNode {
		member := clone(list)
		*list = yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{member}}
		r.repaired("spec.disruption.budgets", listOfOne)
	}
	for i, budget := range members(list) {
		path := "spec.disruption.budgets[" + itoa(i) + "]"
		if nodes := at(budget, "nodes"); quote(nodes) {
			r.repaired(path+".nodes", quotedOne, nodes.Value)
		}
		schedule, duration := at(budget, "schedule"), at(budget, "duration")
		switch {
		case schedule != nil && duration == nil:
			inherit(at(budget, "nodes"), take(budget, "schedule"))
			r.repaired(path+".schedule", "requires a duration, which is not set; omitted, so the budget applies at all times; "+
				"set both fields to limit it to a time (was: %s)", schedule.Value)
		case schedule == nil && duration != nil:
			inherit(at(budget, "nodes"), take(budget, "duration"))
			r.repaired(path+".duration", "requires a schedule, which is not set; omitted, so the budget applies at all times (was: %s)",
				duration.Value)
		case duration != nil:
			r.budgetDuration(duration, path+".duration")
			r.budgetSchedule(schedule, path+".schedule")
		}
		for _, reason := range members(at(budget, "reasons")) {
			for _, known := range []karpv1.DisruptionReason{karpv1.DisruptionEmpty, karpv1.DisruptionDrifted, karpv1.DisruptionUnderutilized} {
				if strings.EqualFold(reason.Value, string(known)) && reason.Value != string(known) {
					r.repaired(path+".reasons", "contains %s, want %s", reason.Value, known)
					reason.Value = string(known)
				}
			}
		}
	}
}

// inherit moves the comments of a removed value to another one.
func inherit(node, left *yaml.Node) {
	if node != nil && node.LineComment == "" {
		node.LineComment = comments(left)
	}
}

// budgetSchedule reports a schedule that the API server accepts and the controller cannot parse: no node of the
// pool is disrupted then.
func (r *repair) budgetSchedule(node *yaml.Node, path string) {
	budget := karpv1.Budget{Schedule: &node.Value, Duration: &metav1.Duration{Duration: time.Hour}}
	if _, err := budget.Active(time.Unix(0, 0)); err != nil {
		r.note(Impossible, path, "cannot be parsed, so no node of the NodePool is disrupted: %v", err)
	}
}

var budgetSpan = regexp.MustCompile(`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`)

func (r *repair) budgetDuration(node *yaml.Node, path string) {
	if budgetSpan.MatchString(node.Value) {
		return
	}
	d, err := time.ParseDuration(node.Value)
	if seconds, wrong := strconv.ParseInt(node.Value, 10, 32); wrong == nil {
		d, err = time.Duration(seconds)*time.Second, nil
	}
	if days, found := strings.CutSuffix(node.Value, "d"); found {
		if n, wrong := strconv.Atoi(days); wrong == nil {
			d, err = time.Duration(n)*24*time.Hour, nil
		}
	}
	if err != nil || d <= 0 {
		r.note(Impossible, path, "is %q, want hours and minutes such as 8h or 8h30m", node.Value)
		return
	}
	d = (d + time.Minute - 1).Truncate(time.Minute)
	wanted := span(d)
	r.repaired(path, "is %s, want hours and minutes; set to %s", node.Value, wanted)
	*node = *scalar(wanted)
}

// unquotedOne is the message about a string that is converted to an integer.
const unquotedOne = "is %q, want an integer; unquoted"

// number converts a string to a number.
func (r *repair) number(path string) {
	node := r.find(path)
	if node == nil || node.Tag != "!!str" {
		return
	}
	if _, err := strconv.ParseInt(node.Value, 10, 64); err != nil {
		r.note(Impossible, path, "is %q, want an integer", node.Value)
		return
	}
	node.Tag, node.Style = "!!int", 0
	r.repaired(path, unquotedOne, node.Value)
}

// amounts repairs amounts of resources.
func (r *repair) amounts(path string) {
	list := r.find(path)
	for _, name := range fields(list) {
		node := at(list, name)
		value := strings.TrimSpace(text(node))
		if _, err := karpv1.ParseQuantity(value); err == nil {
			continue
		}
		wanted := strings.TrimSuffix(strings.NewReplacer(" ", "", "GB", "G", "GiB", "Gi", "MB", "M", "MiB", "Mi",
			"TB", "T", "gi", "Gi", "mi", "Mi").Replace(value), "B")
		if _, err := karpv1.ParseQuantity(wanted); err != nil || value == "" {
			r.note(Impossible, path+"."+name, "is %q, want a quantity such as 1000 or 1000Gi", value)
			continue
		}
		node.Value = wanted
		r.repaired(path+"."+name, "is %s, want a quantity; set to %s", value, wanted)
	}
}
