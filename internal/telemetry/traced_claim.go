package telemetry

import (
	"errors"
	"maps"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Step is a step of a claim that has ended.
type Step struct {
	// Claim is its name, Pool and Node those of its NodePool and node, "" where they are not known.
	Claim, Pool, Node string
	// Name is launch, register or initialize, or that of a call of the cloud.
	Name string
	// Begin is zero for a step that begins where the one before has ended, or else, as after a restart, at Before.
	Begin, Before, End time.Time
	Err                error
	// Last says that the node is ready.
	Last bool
}

// Step sends the span of a step of a claim, and after the last one that of the claim.
func (t *Traces) Step(s Step) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	c := t.claim(s.Claim, "", s.Before)
	if c.over {
		return
	}
	if s.Node != "" {
		c.node, t.nodes[s.Node] = s.Node, s.Claim
	}
	c.span.SetAttributes(c.attributes(s.Pool)...)
	begin := s.Begin
	if begin.IsZero() {
		begin, c.step = c.step, s.End
	}
	t.below(c, s.Claim, s.Name, begin, s.End, s.Err)
	if s.Last {
		c.over = true
		end(c.span, s.End, s.Err)
	}
}

// Bound sends the span of a pod from its plan until it is bound to a node of a traced claim.
func (t *Traces) Bound(namespace, pod, node string, planned, bound time.Time) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	name := t.nodes[node]
	if c := t.claims[name]; c != nil {
		t.below(c, name, "pod bound", planned, bound, nil,
			attribute.String("k8s.namespace.name", namespace), attribute.String("k8s.pod.name", pod))
	}
}

// below sends a span below that of the claim.
func (t *Traces) below(c *tracedClaim, claim, name string, begin, at time.Time, err error, more ...attribute.KeyValue) {
	ctx := trace.ContextWithSpan(rooted(claimRoot(claim)), c.span)
	attributes := append([]attribute.KeyValue{attribute.String("karpenter.nodeclaim.name", claim)}, more...)
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(begin), trace.WithAttributes(append(attributes, c.attributes("")...)...))
	end(span, at, err)
}

// attributes returns what is known of the claim.
func (c *tracedClaim) attributes(pool string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for key, value := range map[string]string{"karpenter.plan.id": c.plan, "k8s.node.name": c.node, "karpenter.nodepool.name": pool} {
		if value != "" {
			list = append(list, attribute.String(key, value))
		}
	}
	return list
}

// claim returns the claim of the name, whose span begins at a time if it is new. It is linked to the pass that plans it.
func (t *Traces) claim(name, planID string, at time.Time) *tracedClaim {
	if c := t.claims[name]; c != nil {
		return c
	}
	if len(t.claims) >= mostTraced {
		maps.DeleteFunc(t.claims, func(_ string, c *tracedClaim) bool { return c.over })
		if len(t.claims) >= mostTraced {
			clear(t.claims)
		}
		maps.DeleteFunc(t.nodes, func(_, claim string) bool { return t.claims[claim] == nil })
	}
	options := []trace.SpanStartOption{trace.WithTimestamp(at), trace.WithAttributes(attribute.String("karpenter.nodeclaim.name", name))}
	if planID != "" {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: planRoot(planID)}),
			trace.WithAttributes(attribute.String("karpenter.plan.id", planID)))
	}
	_, span := t.tracer.Start(rooted(claimRoot(name)), "NodeClaim", options...)
	c := &tracedClaim{span: span, plan: planID, step: at}
	t.claims[name] = c
	return c
}

// Gone ends the span of a claim that is deleted before its node was ready.
func (t *Traces) Gone(claim string, at time.Time, why string) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if c := t.claims[claim]; c != nil && !c.over {
		c.over = true
		end(c.span, at, errors.New("deleted: "+why))
	}
}

// forget drops a claim. Its span, which has not ended, is not sent.
func (t *Traces) forget(name string) {
	if c := t.claims[name]; c != nil && !c.over {
		delete(t.claims, name)
		delete(t.nodes, c.node)
	}
}
