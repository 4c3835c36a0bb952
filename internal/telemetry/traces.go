package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"
)

// Traces sends spans over OTLP that tell where the time of a launch goes. There are two kinds of traces, linked to each
// other: one for each pass of a loop that creates claims, and one for each claim from its plan until its node is ready.
//
//	provision: batch, snapshot, plan, execute (create NodeClaim --link--+), nominate
//	                                                                    v
//	                          NodeClaim: launch (cloud create), register, initialize; pod bound
//
// The IDs of a trace follow from the ID of the plan, or the name of the claim, so that the traces of a claim that another
// process continues is the same. A nil Traces sends nothing and costs nothing. It is safe for concurrent use.
type Traces struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer

	mutex sync.Mutex
	// claims are by name, and nodes hold their names by that of the node.
	claims map[string]*tracedClaim
	nodes  map[string]string
}

// tracedClaim is a claim whose span has begun.
type tracedClaim struct {
	span trace.Span
	// plan is the ID of the pass that created it, "" if that is not known. node is the name of its node.
	plan, node string
	// step is the end of its last step, and over says that its span has ended.
	step time.Time
	over bool
}

// mostTraced is the number of claims above which those whose spans have ended are forgotten, and all if too few have.
const mostTraced = 4096

// Exporter returns what sends spans to a URL, as OTLP over HTTP.
type Exporter func(ctx context.Context, url string) (sdktrace.SpanExporter, error)

// NewTraces returns nil unless the environment names an endpoint for traces, and logs one that is not a URL. Everything
// else follows from the standard variables too: OTEL_EXPORTER_OTLP_HEADERS, OTEL_TRACES_SAMPLER, OTEL_SERVICE_NAME and
// others (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/). The protocol is
// http/protobuf; another one is logged. Attributes of OTEL_RESOURCE_ATTRIBUTES that cannot be read are logged and left
// out. An endpoint that does not answer is no error; it is logged. export returns what sends to a URL: the library that does
// is large, and only the controller has it, not the plugin, which uses this package for the names of events.
func NewTraces(ctx context.Context, version string, log logr.Logger, export Exporter) (*Traces, error) {
	to, err := endpointOfTraces()
	if err != nil {
		log.Error(err, "setting up traces")
	}
	if to == nil {
		return nil, nil //nolint:nilnil // nil sends nothing
	}
	if err := checkProtocol(); err != nil {
		log.Error(err, "setting up traces")
	}
	exporter, err := export(ctx, to.String())
	if err != nil {
		return nil, fmt.Errorf("setting up traces: %w", err)
	}
	described, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", "karpenter"),
		attribute.String("service.version", version)), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil { // the resource has what could be read
		log.Error(fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES is %q: %w", os.Getenv("OTEL_RESOURCE_ATTRIBUTES"), err), "setting up traces")
	}
	sometimes := &rate.Sometimes{First: 1, Interval: 5 * time.Minute}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		if !errors.Is(err, resource.ErrPartialResource) { // the provider reads the variable again
			sometimes.Do(func() { log.Error(err, "sending traces") })
		}
	}))
	log.Info("sending traces", "url", to.String())
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(described), sdktrace.WithIDGenerator(ids{}))
	return &Traces{provider: provider, tracer: provider.Tracer("github.com/karpenter-go/karpenter"),
		claims: map[string]*tracedClaim{}, nodes: map[string]string{}}, nil
}

// Shutdown sends what has not been sent yet.
func (t *Traces) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Span is a part of a pass, from Begin to End.
type Span struct {
	Name       string
	Begin, End time.Time
	// Claim is the name of the claim that it is about, "" for none.
	Claim string
	// Err is why it failed, nil if it succeeded.
	Err error
	// Counts are attributes.
	Counts map[string]int
	Parts  []Span
}

// Planned records that the claims are about to be created by a pass, at a time.
func (t *Traces) Planned(planID string, at time.Time, claims ...string) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, name := range claims {
		t.claim(name, planID, at)
	}
}

// Unplanned forgets claims that were not created.
func (t *Traces) Unplanned(claims ...string) {
	if t == nil {
		return
	}
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, name := range claims {
		t.forget(name)
	}
}

// Pass sends the spans of a pass with the ID.
func (t *Traces) Pass(planID string, whole Span) {
	if t != nil {
		t.send(rooted(planRoot(planID)), planID, whole)
	}
}

// send sends a span with its parts, below the span in the context.
func (t *Traces) send(ctx context.Context, planID string, s Span) {
	options := []trace.SpanStartOption{trace.WithTimestamp(s.Begin), trace.WithAttributes(attribute.String("karpenter.plan.id", planID))}
	if s.Claim != "" {
		options = append(options, trace.WithAttributes(attribute.String("karpenter.nodeclaim.name", s.Claim)),
			trace.WithLinks(trace.Link{SpanContext: claimRoot(s.Claim)}))
	}
	ctx, span := t.tracer.Start(ctx, s.Name, options...)
	for key, n := range s.Counts {
		span.SetAttributes(attribute.Int("karpenter."+key, n))
	}
	for _, part := range s.Parts {
		t.send(ctx, planID, part)
	}
	end(span, s.End, s.Err)
}

// end ends a span.
func end(span trace.Span, at time.Time, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(trace.WithTimestamp(at))
}

// planRoot and claimRoot are the spans of a pass and of a claim.
func planRoot(id string) trace.SpanContext    { return rootOf("plan " + id) }
func claimRoot(name string) trace.SpanContext { return rootOf("nodeclaim " + name) }

func rootOf(what string) trace.SpanContext {
	sum := sha256.Sum256([]byte(what))
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]),
		TraceFlags: trace.FlagsSampled, Remote: true})
}

// ids gives the first span in a context that rooted returned its ID, and others random ones.
type ids struct{}

type rootKey struct{}

func rooted(root trace.SpanContext) context.Context {
	return context.WithValue(context.Background(), rootKey{}, root)
}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if root, is := ctx.Value(rootKey{}).(trace.SpanContext); is {
		return root.TraceID(), root.SpanID()
	}
	var id trace.TraceID
	_, _ = rand.Read(id[:]) // never fails
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(context.Context, trace.TraceID) (id trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}
