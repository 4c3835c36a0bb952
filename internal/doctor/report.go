package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Report is the output of the command.
type Report struct {
	Findings []Finding `json:"findings"`
	// Looked is the number of examined objects by kind, and of checks by name.
	Looked map[string]int `json:"looked"`
	// Notes list what was left out, and why.
	Notes []string `json:"notes,omitempty"`
}

// NewReport assembles the report.
func NewReport(f *Facts, findings []cloud.Finding) *Report {
	return &Report{Findings: Arrange(f, findings), Notes: slices.Clone(f.Notes), Looked: map[string]int{
		"permissions": f.Reviewed, "definitions": len(f.Expected), "nodePools": len(f.Pools), "nodeClasses": len(f.Classes), "nodeClaims": len(f.Claims),
		"nodes": len(f.Nodes), "pods": len(f.Pods), "webhooks": len(f.webhooks()),
	}}
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
	l := r.Looked
	fmt.Fprintf(&b, "examined the leader, the clocks, and these numbers of objects: permissions %d, CRDs %d, NodePools %d, node classes %d, NodeClaims %d, nodes %d, running pods %d, webhooks %d\n",
		l["permissions"], l["definitions"], l["nodePools"], l["nodeClasses"], l["nodeClaims"], l["nodes"], l["pods"], l["webhooks"])
	for _, note := range r.Notes {
		fmt.Fprintln(&b, note)
	}
	return b.String()
}
