package doctor

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/karpenter-go/karpenter/cloud"
)

// Report is the output of the command.
type Report struct {
	Findings []Finding `json:"findings"`
	// Looked is the number of examined objects by kind, and of checks by name; kinds that could not be read are omitted.
	Looked map[string]int `json:"looked"`
	// Notes list what was left out, and why.
	Notes []string `json:"notes,omitempty"`
}

// counts are the numbers of objects in a report: the field, the words, the kind that was read for it (none for checks),
// and the number.
var counts = []struct {
	field, words, kind string
	number             func(*Facts) int
}{
	{"permissions", "permissions", "", func(f *Facts) int { return f.Reviewed }},
	{"definitions", "CRDs", "CustomResourceDefinition", (*Facts).definitions},
	{"nodePools", "NodePools", "NodePool", func(f *Facts) int { return len(f.Pools) }},
	{"nodeClasses", "node classes", "NodeClass", func(f *Facts) int { return len(f.Classes) }},
	{"nodeClaims", "NodeClaims", "NodeClaim", func(f *Facts) int { return len(f.Claims) }},
	{"nodes", "nodes", " Node", func(f *Facts) int { return len(f.Nodes) }},
	{"pods", "running pods", " Pod", func(f *Facts) int { return len(f.Pods) }},
	{"webhooks", "webhooks", "WebhookConfiguration", func(f *Facts) int { return len(f.webhooks()) }},
}

// definitions returns the number of expected definitions that are installed, which were compared.
func (f *Facts) definitions() int {
	number := 0
	for _, want := range f.Expected {
		if slices.ContainsFunc(f.Installed, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == want.Name }) {
			number++
		}
	}
	return number
}

// NewReport assembles the report. Kinds that could not be read have no number.
func NewReport(f *Facts, findings []cloud.Finding) *Report {
	report := &Report{Findings: Arrange(f, findings), Notes: slices.Clone(f.Notes), Looked: map[string]int{}}
	for _, c := range counts {
		if c.kind == "" || !f.couldNot(c.kind) {
			report.Looked[c.field] = c.number(f)
		}
	}
	return report
}

// Text returns the report as text.
func (r *Report) Text() string {
	var b strings.Builder
	for _, finding := range r.Findings {
		fmt.Fprintf(&b, "%s  %s\n  %s\n  fix: %s\n", finding.Code, finding.Object, finding.Problem, finding.Fix)
		for _, symptom := range finding.Follows {
			fmt.Fprintf(&b, "  follows from it: %s  %s: %s\n", symptom.Code, symptom.Object, symptom.Problem)
		}
	}
	if len(r.Findings) == 0 {
		b.WriteString("no problems found\n")
	}
	var read, unread []string
	for _, c := range counts {
		if number, known := r.Looked[c.field]; known {
			read = append(read, fmt.Sprintf("%s %d", c.words, number))
		} else {
			unread = append(unread, c.words)
		}
	}
	fmt.Fprintf(&b, "examined the leader, the clocks, and these numbers of objects: %s", strings.Join(read, ", "))
	if len(unread) > 0 {
		fmt.Fprintf(&b, "; not read: %s", strings.Join(unread, ", "))
	}
	fmt.Fprintln(&b)
	for _, note := range r.Notes {
		fmt.Fprintln(&b, note)
	}
	return b.String()
}
