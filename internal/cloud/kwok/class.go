package kwok

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Annotations of a KWOKNodeClass that make the simulated cloud misbehave. They are read at each launch. A machine keeps
// the values from its launch.
const (
	// AnnotationUnavailable lists unavailable offerings, separated by commas, as type/zone/capacity-type with * as a
	// wildcard: "c-*/test-zone-a/spot,*/test-zone-b/*". They are added to Options.Unavailable.
	AnnotationUnavailable = karpv1.OwnAnnotationPrefix + "kwok-unavailable"
	// AnnotationLaunchDelay and AnnotationTerminationDelay are Go durations that override the options of the same
	// names.
	AnnotationLaunchDelay      = karpv1.OwnAnnotationPrefix + "kwok-launch-delay"
	AnnotationTerminationDelay = karpv1.OwnAnnotationPrefix + "kwok-termination-delay"
	// AnnotationNeverRegister is "true" if machines run but their Nodes are never created.
	AnnotationNeverRegister = karpv1.OwnAnnotationPrefix + "kwok-never-register"
	// AnnotationFailLaunch is the number of launches of each claim that fail with a CreateError before one succeeds.
	AnnotationFailLaunch = karpv1.OwnAnnotationPrefix + "kwok-fail-launch"
	// AnnotationImage is the name of the image that machines run; none if it is not set. Machines that run another
	// image have drifted (see Drifted).
	AnnotationImage = karpv1.OwnAnnotationPrefix + "kwok-image"
)

// behavior is how the cloud treats the machines of a node class.
type behavior struct {
	unavailable       []pattern
	launchDelay       time.Duration
	registrationDelay time.Duration
	terminationDelay  time.Duration
	neverRegister     bool
	failLaunch        int
	image             string
}

// Ready implements cloud.Provider. A class is ready if it exists, is not being deleted, has Ready=True, and its
// annotations are valid.
func (p *Provider) Ready(ctx context.Context, ref cloud.ClassRef) error {
	_, err := p.class(ctx, ref)
	return err
}

// class returns the behavior of a node class. Errors: cloud.ErrNotFound, *cloud.NodeClassNotReadyError, or an API
// error.
func (p *Provider) class(ctx context.Context, ref cloud.ClassRef) (behavior, error) {
	notReady := func(reason, message string) (behavior, error) {
		return behavior{}, &cloud.NodeClassNotReadyError{Class: ref, Reason: reason, Message: message}
	}
	if ref.Group != kwokv1alpha1.Group || ref.Kind != kwokv1alpha1.Kind {
		return notReady("NodeClassNotSupported", fmt.Sprintf("it is a %s.%s, want a %s.%s", ref.Kind, ref.Group,
			kwokv1alpha1.Kind, kwokv1alpha1.Group))
	}
	class := &kwokv1alpha1.KWOKNodeClass{}
	err := p.call(ctx, fmt.Sprintf("reading KWOKNodeClass %q", ref.Name), func(ctx context.Context) error {
		return p.opts.Client.Get(ctx, types.NamespacedName{Name: ref.Name}, class)
	})
	if apierrors.IsNotFound(err) {
		return behavior{}, fmt.Errorf("KWOKNodeClass %q: %w", ref.Name, cloud.ErrNotFound)
	}
	if err != nil {
		return behavior{}, err
	}
	if class.DeletionTimestamp != nil {
		return notReady(karpv1.ReasonNodeClassTerminating, "it is being deleted")
	}
	at := slices.IndexFunc(class.Status.Conditions, func(c status.Condition) bool { return c.Type == "Ready" })
	if at < 0 {
		return notReady(karpv1.ReasonNodeClassReadinessUnknown, "it has no condition Ready, want Ready=True")
	}
	if c := class.Status.Conditions[at]; c.Status != metav1.ConditionTrue {
		return notReady(c.Reason, fmt.Sprintf("its condition Ready is %s: %s", c.Status, c.Message))
	}
	b, err := p.behaviorOf(class)
	if err != nil {
		return notReady("InvalidAnnotation", err.Error())
	}
	return b, nil
}

// isAPIFailure reports whether err is a failed read of a class rather than a result about the class.
func isAPIFailure(err error) bool {
	var notReady *cloud.NodeClassNotReadyError
	return err != nil && !errors.Is(err, cloud.ErrNotFound) && !errors.As(err, &notReady)
}

func (p *Provider) behaviorOf(class *kwokv1alpha1.KWOKNodeClass) (behavior, error) {
	b := behavior{
		launchDelay: p.opts.LaunchDelay, registrationDelay: p.opts.RegistrationDelay, terminationDelay: p.opts.TerminationDelay,
		image: class.Annotations[AnnotationImage],
	}
	if delay := class.Spec.NodeRegistrationDelay; delay != nil {
		b.registrationDelay = delay.Duration
	}
	patterns, err := parsePatterns(strings.Split(class.Annotations[AnnotationUnavailable], ","))
	if err != nil {
		return b, fmt.Errorf("annotation %s: %w", AnnotationUnavailable, err)
	}
	b.unavailable = slices.Concat(p.unavailable, patterns)
	if err := readDelay(class, AnnotationLaunchDelay, &b.launchDelay); err != nil {
		return b, err
	}
	if err := readDelay(class, AnnotationTerminationDelay, &b.terminationDelay); err != nil {
		return b, err
	}
	if text, set := class.Annotations[AnnotationNeverRegister]; set {
		if b.neverRegister, err = strconv.ParseBool(text); err != nil {
			return b, fmt.Errorf("annotation %s: is %q, want true or false", AnnotationNeverRegister, text)
		}
	}
	if text, set := class.Annotations[AnnotationFailLaunch]; set {
		if b.failLaunch, err = strconv.Atoi(text); err != nil || b.failLaunch < 0 {
			return b, fmt.Errorf("annotation %s: is %q, want a number of launches, zero or more", AnnotationFailLaunch, text)
		}
	}
	return b, nil
}

func readDelay(class *kwokv1alpha1.KWOKNodeClass, annotation string, delay *time.Duration) error {
	text, set := class.Annotations[annotation]
	if !set {
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("annotation %s: is %q, want a duration such as 5s", annotation, text)
	}
	*delay = d
	return nil
}
