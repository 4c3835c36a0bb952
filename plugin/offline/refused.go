package offline

import (
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// refusedPool is a pool of a file that the API server would reject. Its nodes, and pods that select it, get this as
// their reason.
type refusedPool struct {
	name string
	why  model.Rejection
}

// refusePool records the pool with its first error, which begins with the field if it is known.
func (o *objects) refusePool(name string, wrong error) {
	why := model.Rejection{Reason: OneLine(wrong)}
	if field, reason, found := strings.Cut(why.Reason, ": "); found && !strings.Contains(field, " ") {
		why = model.Rejection{Field: field, Reason: reason}
	}
	o.refused = append(o.refused, refusedPool{name, why})
}
