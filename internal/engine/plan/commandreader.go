package plan

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// CommandReader decodes commands and caches them by text, because every candidate of a command carries the same text.
type CommandReader map[string]*Command

// Command returns the node's command, nil where it is unreadable or does not list the node.
func (r CommandReader) Command(n *model.Node) *Command {
	cmd, known := r[n.Command]
	if !known {
		if read, err := DecodeCommand(n.Command); err == nil {
			cmd = &read
		}
		r[n.Command] = cmd
	}
	if cmd == nil || !cmd.names(n) {
		return nil
	}
	return cmd
}

// names reports whether the node is a candidate of the command.
func (c *Command) names(n *model.Node) bool {
	return slices.ContainsFunc(c.Candidates, func(candidate Candidate) bool {
		return candidate.ClaimUID == n.ClaimUID && candidate.Claim == n.Claim
	})
}

// Leaving reports whether the node is being removed and provisioning need not expect a rollback: its claim is being
// deleted, for any reason, or it is in a command that launches replacements or drains.
func Leaving(n *model.NodeSpec) bool { return CommandReader{}.Leaving(&model.Node{NodeSpec: n}) }

// Leaving is like the function Leaving, with the cache of the reader.
func (r CommandReader) Leaving(n *model.Node) bool {
	switch {
	case n.Claim == "":
		return false
	case n.Deleting:
		return true
	case n.Command == "":
		return false
	}
	cmd := r.Command(n)
	return cmd != nil && (cmd.Phase == Launching || cmd.Phase == Draining)
}
