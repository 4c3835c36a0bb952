package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// page is how many objects are read at a time.
const page = 500

// Storage rewrites everything in the API server that needs a conversion to be read or written in v1. It runs on the
// leader.
type Storage struct {
	// Client reads from the API server.
	Client client.Client
	// Classes means that this controller may write EC2NodeClasses.
	Classes bool
	Clock   clock.WithTicker
	Log     logr.Logger
	// Look is the period of the checks (0: half a minute). Settled is how long a definition must be unchanged before
	// its status is trimmed (0: a minute): until then, another API server may still store the previous version.
	Look    time.Duration
	Settled time.Duration

	// seen is when each generation of a definition was first seen.
	seen map[string]seen
	// claimsDone means that the managers of claims have been examined. That is done once, and again after a
	// migration: only controllers write claims.
	claimsDone bool
}

type seen struct {
	generation int64
	since      time.Time
	// rewritten holds the objects that have been written since. The others are retried.
	rewritten map[types.UID]bool
}

// Start runs checks periodically until the context ends.
func (s *Storage) Start(ctx context.Context) error {
	if s.Look <= 0 {
		s.Look = 30 * time.Second
	}
	if s.Settled <= 0 {
		s.Settled = time.Minute
	}
	ticker := s.Clock.NewTicker(s.Look)
	defer ticker.Stop()
	said := ""
	for {
		err := errors.Join(s.rewriteAll(ctx), s.disownAll(ctx))
		if err != nil && err.Error() != said && ctx.Err() == nil {
			s.Log.Error(err, "cannot rewrite stored objects in the current version; retrying")
		}
		if said = ""; err != nil {
			said = err.Error()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

func (s *Storage) rewriteAll(ctx context.Context) error {
	older, wrong := olderStored(ctx, s.Client)
	for _, definition := range older {
		wrong = errors.Join(wrong, s.rewrite(ctx, definition))
	}
	return wrong
}

// rewrite writes each object unchanged, which stores it in v1, and then records in the definition that all are.
func (s *Storage) rewrite(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition) error {
	kind := schema.GroupVersionKind{Group: definition.Spec.Group, Version: stored, Kind: definition.Spec.Names.Kind}
	if kind.Group == awsv1.Group && !s.Classes || !storesV1(definition) || !s.isSettled(definition) {
		return nil
	}
	done := s.seen[definition.Name].rewritten
	count, err := s.each(ctx, kind, func(object *metav1.PartialObjectMetadata) error {
		uid := object.UID
		if done[uid] {
			return nil
		}
		err := s.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(`{}`)), owner)
		done[uid] = err == nil
		return client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("rewriting the objects of %s: %w", definition.Name, err)
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": definition.ResourceVersion},
		"status":   map[string]any{"storedVersions": []string{stored}},
	})
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", definition.Name, err)
	}
	err = s.Client.Status().Patch(ctx, definition, client.RawPatch(types.MergePatchType, patch), owner)
	if apierrors.IsConflict(err) {
		return nil // it has changed meanwhile; everything is checked again
	}
	if err != nil {
		return fmt.Errorf("writing the status of %s: %w", definition.Name, err)
	}
	s.Log.Info("all objects are stored in "+stored+" now", "definition", definition.Name, "objects", count)
	s.claimsDone = false
	delete(s.seen, definition.Name)
	return nil
}

func storesV1(definition *apiextensionsv1.CustomResourceDefinition) bool {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name == stored
		}
	}
	return false
}

func (s *Storage) isSettled(definition *apiextensionsv1.CustomResourceDefinition) bool {
	if s.seen == nil {
		s.seen = map[string]seen{}
	}
	was, ok := s.seen[definition.Name]
	if !ok || was.generation != definition.Generation {
		was = seen{definition.Generation, s.Clock.Now(), map[types.UID]bool{}}
		s.seen[definition.Name] = was
	}
	return s.Clock.Since(was.since) >= s.Settled
}

// disownAll converts entries of managedFields in an older version to v1.
func (s *Storage) disownAll(ctx context.Context) error {
	kinds := []schema.GroupVersionKind{karpv1.GroupVersion.WithKind("NodePool")}
	if s.Classes {
		kinds = append(kinds, awsv1.GroupVersion.WithKind(awsv1.Kind))
	}
	if !s.claimsDone {
		kinds = append(kinds, karpv1.GroupVersion.WithKind("NodeClaim"))
	}
	var wrong error
	for _, kind := range kinds {
		again := false
		_, err := s.each(ctx, kind, func(object *metav1.PartialObjectMetadata) error {
			err := s.convertEntries(ctx, object)
			if apierrors.IsConflict(err) { // written meanwhile by another client; it is checked again
				again = true
				return nil
			}
			return err
		})
		if err != nil {
			wrong = errors.Join(wrong, fmt.Errorf("rewriting the managed fields of %ss: %w", kind.Kind, err))
		}
		if kind.Kind == "NodeClaim" {
			s.claimsDone = err == nil && !again
		}
	}
	return wrong
}

// convertEntries converts the entries of one object. After a conflict, it has to be called again.
func (s *Storage) convertEntries(ctx context.Context, object *metav1.PartialObjectMetadata) error {
	if _, older := v1beta1.ManagedInV1(object, false); !older {
		return nil
	}
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(object.GroupVersionKind())
	if err := s.Client.Get(ctx, client.ObjectKeyFromObject(object), whole); err != nil {
		return client.IgnoreNotFound(err)
	}
	_, family, _ := unstructured.NestedString(whole.Object, "spec", "amiFamily")
	now := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta}
	now.Name, now.ResourceVersion, now.ManagedFields = whole.GetName(), whole.GetResourceVersion(), whole.GetManagedFields()
	entries, older := v1beta1.ManagedInV1(now, family)
	if !older {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": now.ResourceVersion, "managedFields": entries}})
	if err != nil {
		return err
	}
	return client.IgnoreNotFound(s.Client.Patch(ctx, now, client.RawPatch(types.MergePatchType, patch), owner))
}

// each calls do for the metadata of each object of a kind, and returns the number of successful calls. An object that
// the API server rejects does not affect the others. Without a response, the rest is left for the next check.
func (s *Storage) each(ctx context.Context, kind schema.GroupVersionKind, do func(*metav1.PartialObjectMetadata) error) (int, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	count := 0
	var wrong refusals
	for {
		if err := s.Client.List(ctx, list, &client.ListOptions{Limit: page, Continue: list.Continue}); err != nil {
			return count, errors.Join(wrong.err(), err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			object.SetGroupVersionKind(kind)
			err := do(object)
			var answer apierrors.APIStatus
			switch {
			case err == nil:
				count++
			case ctx.Err() == nil && errors.As(err, &answer):
				wrong.add(object.Name, err)
			default:
				return count, errors.Join(wrong.err(), fmt.Errorf("%s: %w", object.Name, err))
			}
		}
		if list.Continue == "" {
			return count, wrong.err()
		}
	}
}

// mostNamed is how many failed objects an error names.
const mostNamed = 10

// refusals holds errors about objects, and the number of further ones that are not named.
type refusals struct {
	named  []error
	beside int
}

func (r *refusals) add(name string, err error) {
	if len(r.named) == mostNamed {
		r.beside++
		return
	}
	r.named = append(r.named, fmt.Errorf("%s: %w", name, err))
}

// err returns nil if there are no errors.
func (r *refusals) err() error {
	if r.beside > 0 {
		return errors.Join(append(r.named, fmt.Errorf("and %d more", r.beside))...)
	}
	return errors.Join(r.named...)
}
