package history

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// The forms of upstream's lines are read from public issues, which the test data name. What they lack is not known: no
// line has a price, or which of several new nodes a pod is for.

// viaCommand matches the commands of upstream until 1.4, such as
//
//	deprovisioning via consolidation delete, terminating 1 machines NODE/TYPE/CAPACITY
//	disrupting via drift replace, terminating 1 nodes (14 pods) NODE/TYPE/CAPACITY and replacing with ...
//	disrupting nodeclaim(s) via delete, terminating 1 nodes (0 pods) NODE/TYPE/CAPACITY
var viaCommand = regexp.MustCompile(`^(?:deprovisioning|disrupting)(?: nodeclaim\(s\))? via (?:([a-z ]+) )?(delete|replace), ` +
	`terminating \d+ [a-z]+ (?:\((\d+) pods\) )?(.*?)(?: and replacing with .*)?$`)

// moreNames matches what follows the names that upstream's lists have.
var moreNames = regexp.MustCompile(` and (\d+) other\(s\)$`)

// upstream returns what a line of upstream's controller says about a node, nil if it is about something else. e has the
// keys that are the same.
func upstream(l *line, e *event) *event {
	switch m := viaCommand.FindStringSubmatch(l.Message); {
	case m != nil:
		e.step, e.command = disrupting, textCommand(l, m)
	case l.Message == "disrupting node(s)":
		e.step, e.command = disrupting, listedCommand(l)
	case strings.HasPrefix(l.Message, "found provisionable pod(s)"):
		e.step, e.pods = found, listedPods(l.Pods.names)
	case l.Message == "computed new nodeclaim(s) to fit pod(s)" || l.Message == "computed new machine(s) to fit pod(s)":
		e.step, e.nodes, e.pods = found, max(l.Claims, 1), podList{count: l.Pods.count}
	case strings.HasPrefix(l.Message, "initiating delete") && e.known():
		e.step, e.reason, e.detail = claimDeleted, snake(cmp.Or(l.Kind, "interruption")), l.Message
	case (l.Message == "failed launching nodeclaim" || strings.HasPrefix(l.Message, "insufficient capacity")) && e.claim != "":
		e.step, e.reason, e.detail = failed, "insufficient_capacity", cmp.Or(l.Error, l.Message)
		if !strings.Contains(e.detail, "insufficient capacity") {
			e.reason = "launch_failed"
		}
	default:
		return nil
	}
	return e
}

func (e *event) known() bool { return e.claim != "" || e.node != "" }

// textCommand returns the command of a line whose message names the nodes.
func textCommand(l *line, m []string) *Command {
	c := &Command{ID: l.CommandID2, Time: l.when(), Decision: m[2], reconcile: l.ReconcileID, Reason: upstreamReason(cmp.Or(l.Reason, m[1]))}
	c.Pods, _ = strconv.Atoi(m[3]) // empty before 0.33
	for _, node := range strings.Split(m[4], ", ") {
		parts := strings.Split(node, "/")
		c.Nodes = append(c.Nodes, parts[0])
		c.kinds, c.capacities = append(c.kinds, at(parts, 1)), append(c.capacities, at(parts, 2))
	}
	return c
}

// listedCommand returns the command of a line whose keys name the nodes, as upstream writes it from 1.5 on.
func listedCommand(l *line) *Command {
	c := &Command{ID: l.CommandID2, Time: l.when(), Reason: upstreamReason(l.Reason), Decision: l.Decision, Pods: l.PodCount, new: l.NewNodes,
		reconcile: l.ReconcileID}
	for _, d := range l.Disrupted {
		c.Nodes, c.NodeClaims = append(c.Nodes, string(d.Node)), append(c.NodeClaims, string(d.NodeClaim))
		c.kinds, c.capacities = append(c.kinds, d.InstanceType), append(c.capacities, d.CapacityType)
	}
	for _, d := range l.Replaced {
		if d.NodeClaim != "" {
			c.Replacements = append(c.Replacements, string(d.NodeClaim))
		}
	}
	return c
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}

// upstreamReason returns the word for the reason of a command of upstream.
func upstreamReason(text string) string {
	switch text = strings.ToLower(text); text {
	case "drift":
		return "drifted"
	case "expiration":
		return "expired"
	case "emptiness", "empty", "empty node":
		return "empty"
	case "consolidation", "multi-consolidation", "single-consolidation":
		return "underutilized"
	case "":
		return "unknown"
	}
	return strings.ReplaceAll(text, " ", "_")
}

// listedPods returns the pods of a list such as "a/b, c/d and 3 other(s)".
func listedPods(text string) podList {
	more := 0
	if m := moreNames.FindStringSubmatch(text); m != nil {
		more, _ = strconv.Atoi(m[1]) // digits; too many are none
		text = strings.TrimSuffix(text, m[0])
	}
	if text == "" {
		return podList{}
	}
	names := strings.Split(text, ", ")
	return podList{len(names) + more, names}
}

// snake returns a name such as SpotInterruptionKind as spot_interruption.
func snake(text string) string {
	text = strings.TrimSuffix(text, "Kind")
	var b strings.Builder
	for i, r := range text {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
