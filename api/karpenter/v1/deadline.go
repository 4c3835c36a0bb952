package v1

import "time"

// DrainEnds is when the drain of the claim's node ends by force: as AnnotationTerminationTimestamp says, else, once the
// claim is being deleted, as its terminationGracePeriod does; zero for never. readable is false for an annotation that is
// no time (RFC 3339).
func (c *NodeClaim) DrainEnds() (at time.Time, readable bool) {
	text, noted := c.Annotations[AnnotationTerminationTimestamp]
	if noted {
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			return at, true
		}
	}
	if grace := c.Spec.TerminationGracePeriod; grace != nil && !c.DeletionTimestamp.IsZero() {
		at = c.DeletionTimestamp.Add(grace.Duration)
	}
	return at, !noted
}
