package v1

import "time"

// DrainEnds returns the time at which the drain of the claim's node ends by force: the value of
// AnnotationTerminationTimestamp, or, if the claim is being deleted, the end of its terminationGracePeriod. It
// returns zero for never. readable is false if the annotation is not a time in the format RFC 3339.
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
