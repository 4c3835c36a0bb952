package telemetry

import (
	"fmt"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// These are the event reasons about static pools. They do not exist in upstream Karpenter.
const (
	ReasonStaticPoolIgnored = "StaticPoolIgnored"
	ReasonStaticPoolShort   = "StaticPoolShort"
)

// StaticPoolIgnored reports that a pool specifies a number of nodes that is not maintained.
func StaticPoolIgnored(pool *karpv1.NodePool) Event {
	e := event(pool, warning, ReasonStaticPoolIgnored,
		"The pool sets spec.replicas, which has an effect only with the feature gate StaticCapacity (--feature-gates=StaticCapacity=true)",
		uid(pool))
	e.Window = time.Hour
	return e
}

// StaticPoolShort reports that a pool lacks nodes that cannot be launched now.
func StaticPoolShort(pool *karpv1.NodePool, missing int64, why string) Event {
	e := event(pool, warning, ReasonStaticPoolShort,
		fmt.Sprintf("Nodes that spec.replicas requires and that are not launched: %d: %s", missing, why), uid(pool), why)
	e.Window = 5 * time.Minute
	return e
}
