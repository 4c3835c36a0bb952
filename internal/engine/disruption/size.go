package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// mostBytes is the maximum length of an encoded command. The API server accepts 256 KiB of annotations per object in
// total.
const mostBytes = 128 << 10

// oversized reports whether the command cannot be stored.
func oversized(cmd *plan.Command) bool { return len(cmd.Encode()) >= mostBytes }

// shorten reduces the command until it can be stored. First it drops the assignments on unmanaged nodes: they only help
// another process to continue the command. Then it reduces the lists of types of the replacements, the longest first.
// It keeps the cheapest types, as many as minValues require and never fewer than make a spot launch likely to
// succeed. The command may still be oversized afterwards.
func (w *projection) shorten(cmd *plan.Command) {
	if oversized(cmd) {
		cmd.Destinations = slices.DeleteFunc(cmd.Destinations, func(l plan.Destination) bool { return l.Claim == "" })
	}
	for oversized(cmd) {
		var longest *plan.NewClaim
		least := 0
		for i := range cmd.Replacements {
			r := &cmd.Replacements[i]
			if longest != nil && len(r.Options) <= len(longest.Options) {
				continue
			}
			s := w.offeringsFor(r, "")
			if n := max(spotFlexibility, s.enoughOf(r.Options)); s.pool != nil && n < len(r.Options) {
				longest, least = r, n
			}
		}
		if longest == nil {
			return
		}
		longest.Options = longest.Options[:max(least, len(longest.Options)/2)]
		longest.Requirements = demand(slices.Clone(longest.Requirements), model.LabelType, longest.Types())
	}
}
