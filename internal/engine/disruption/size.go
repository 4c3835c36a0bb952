package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// mostBytes is the longest text of a command. The API server takes 256 KiB of annotations on an object altogether.
const mostBytes = 128 << 10

// oversized reports whether the command cannot be stored.
func oversized(cmd *plan.Command) bool { return len(cmd.Encode()) >= mostBytes }

// shorten cuts what the command says until it can be stored. First it forgets the seats on nodes that are not ours: they only
// help a process that goes on from the command after another. Then it cuts the lists of types of what is bought, the longest
// first. The cheapest types stay, as many as minValues ask for and never fewer than make a spot node likely to be had. A command
// may still be oversized then.
func (w *world) shorten(cmd *plan.Command) {
	if oversized(cmd) {
		cmd.Landing = slices.DeleteFunc(cmd.Landing, func(l plan.Landing) bool { return l.Claim == "" })
	}
	for oversized(cmd) {
		var longest *plan.NewClaim
		least := 0
		for i := range cmd.Replacements {
			r := &cmd.Replacements[i]
			pool := w.snap.Pool(r.Pool)
			if pool == nil || pool.Types == nil || longest != nil && len(r.Options) <= len(longest.Options) {
				continue
			}
			if n := max(spotFlexibility, enoughFor(pool, r, r.Options)); n < len(r.Options) {
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
