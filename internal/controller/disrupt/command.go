package disrupt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// This file describes commands in words, and as lists for the log.

// summary returns the effect of a command, as a clause.
func summary(c plan.Command) string {
	text := c.Decision() + " " + telemetry.Count(len(c.Candidates), "node")
	if len(c.Replacements) > 0 {
		text += fmt.Sprintf(" by %d", len(c.Replacements))
	}
	return text + ", moving " + telemetry.Count(c.Worth.Pods, "pod")
}

// disrupting returns the events that report a command on its nodes and claims.
func disrupting(c plan.Command) []telemetry.Event {
	text := string(c.Reason)
	if c.Worth.Pods > 0 {
		text += ", moving " + telemetry.Count(c.Worth.Pods, "pod")
		if to := append(replacementsOf(c), destinationsOf(c)...); len(to) > 0 {
			text += " to " + strings.Join(few(to), ", ")
		}
	}
	if c.Worth.Saving > 0 {
		text += fmt.Sprintf(", saving %s USD per hour", strconv.FormatFloat(explain.USD(c.Worth.Saving), 'g', 4, 64))
	}
	var list []telemetry.Event
	for _, candidate := range c.Candidates {
		node, claim := candidateObjects(candidate)
		list = append(list, telemetry.Disrupting(node, c.ID, text), telemetry.Disrupting(claim, c.ID, text))
	}
	return list
}

// few returns the first five words, and the number of the remaining ones.
func few(words []string) []string {
	const most = 5
	if len(words) <= most {
		return words
	}
	return append(words[:most:most], fmt.Sprintf("and %d more", len(words)-most))
}

// classOf returns the name that events use for the reason for which a command was dropped.
func classOf(code plan.Code) string {
	switch code {
	case plan.BudgetExhausted, plan.BudgetUnreadable:
		return "budget"
	case plan.PodsHomeless, plan.NoSaving, plan.SavingTooSmall, plan.ScoreTooLow, plan.SpotForbidden, plan.ReplacementChanged, plan.ReplacementLost, plan.Paused,
		plan.LaunchedAgain, plan.PodsFollow:
		return "scheduling"
	case plan.NodeGone, plan.NodeLeaving, plan.NodeBusy, plan.NodeProtected, plan.NodeNominated, plan.NodeTooYoung, plan.NodeNotReady, plan.NodeTaken, plan.NodeUnsettled, plan.NodeExpecting,
		plan.PolicyForbids, plan.PoolGone, plan.PoolRefused, plan.PriceUnknown, plan.PDBBlocks, plan.PDBsConflict,
		plan.ZoneShifted:
		return "churn"
	}
	return "unknown"
}

// poolsOf returns the pools of a command's candidates, each once.
func poolsOf(c plan.Command) []string {
	pools := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		pools[i] = candidate.Pool
	}
	slices.Sort(pools)
	return slices.Compact(pools)
}

func nodesOf(c plan.Command) []string {
	nodes := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		nodes[i] = candidate.Node
	}
	return nodes
}

func claimsOf(c plan.Command) []string {
	claims := make([]string, len(c.Candidates))
	for i, candidate := range c.Candidates {
		claims[i] = candidate.Claim
	}
	return claims
}

// replacementsOf returns the claims that a command creates, each with the cheapest instance that it may get, where
// that is known.
func replacementsOf(c plan.Command) []string {
	claims := make([]string, len(c.Replacements))
	for i := range c.Replacements {
		r := &c.Replacements[i]
		claims[i] = "nodeclaim/" + r.Name
		if len(r.Options) > 0 {
			claims[i] = telemetry.Instance{ID: claims[i], Type: r.Options[0].Type, Zone: r.Options[0].Zone, CapacityType: r.Options[0].CapacityType}.String()
		}
	}
	return claims
}

// destinationsOf returns the existing nodes that receive pods of a command's nodes.
func destinationsOf(c plan.Command) []string {
	nodes := make([]string, len(c.Destinations))
	for i, l := range c.Destinations {
		nodes[i] = "node/" + l.Node
		if l.Claim != "" {
			nodes[i] = "nodeclaim/" + l.Claim
		}
	}
	return nodes
}

// podsOfReplacement returns a function for the names of the pods that a replacement of the command is for. A command
// that was stored has their UIDs only: they are looked up on the nodes of the command. newest returns the newest snapshot.
func podsOfReplacement(newest func() *model.Snapshot, c plan.Command) func(*plan.NewClaim) []string {
	names := sync.OnceValue(func() map[string]string {
		names, snap := map[string]string{}, newest()
		for _, candidate := range c.Candidates {
			if n := snap.Node(candidate.Node); n != nil {
				for _, pod := range n.Pods {
					names[pod.UID] = pod.Key()
				}
			}
		}
		return names
	})
	return func(r *plan.NewClaim) []string {
		known := execute.PodsOf(r)
		for _, ref := range r.Refs {
			if name := names()[ref.UID]; name != "" {
				known = append(known, name)
			}
		}
		return known
	}
}

// objectsOf returns the objects for events about the node.
func objectsOf(n *model.Node) (*corev1.Node, *karpv1.NodeClaim) {
	return candidateObjects(plan.CandidateOf(n))
}

func candidateObjects(c plan.Candidate) (*corev1.Node, *karpv1.NodeClaim) {
	return telemetry.NodeObject(c.Node, c.NodeUID), telemetry.ClaimObject(c.Claim, c.ClaimUID)
}
