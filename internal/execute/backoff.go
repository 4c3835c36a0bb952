package execute

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// poolNote is a change of an annotation of a pool.
type poolNote struct {
	pool, uid, key string
	change         func(text string) string
}

// poolNoteOf returns the action as a change of an annotation, and false for other actions.
func poolNoteOf(action plan.Action) (poolNote, bool) {
	switch a := action.(type) {
	case plan.NoteBackoff:
		return backoffNote(a.Pool, a.UID, a.Backoff.Reason, &a.Backoff), true
	case plan.ClearBackoff:
		return backoffNote(a.Pool, a.UID, string(a.Reason), nil), true
	case plan.SetPause:
		return pauseNote(a.Pool, a.UID, func(l pause.List) pause.List { return l.With(a.Pause) }), true
	case plan.EndPause:
		return pauseNote(a.Pool, a.UID, func(l pause.List) pause.List { return l.Without(a.Key) }), true
	}
	return poolNote{}, false
}

// backoffNote returns the change that sets the pool's backoff for a reason of disruption, or removes it if now is
// nil.
func backoffNote(pool, uid, reason string, now *model.Backoff) poolNote {
	return poolNote{pool, uid, karpv1.AnnotationBackoff, func(text string) string { return convert.WithBackoff(text, reason, now) }}
}

func pauseNote(pool, uid string, change func(pause.List) pause.List) poolNote {
	return poolNote{pool, uid, karpv1.AnnotationPauses, func(text string) string {
		return change(pause.Parse(text)).Text()
	}}
}

// together returns groups of actions that are each performed by one write, as indexes into the list. The notes on one
// pool form one group, because separate writes would conflict. Each other action forms its own group.
func together(actions []plan.Action) [][]int {
	var groups [][]int
	at := map[[2]string]int{}
	for i, action := range actions {
		note, is := poolNoteOf(action)
		if !is {
			groups = append(groups, []int{i})
			continue
		}
		key := [2]string{note.pool, note.uid}
		group, known := at[key]
		if !known {
			group = len(groups)
			at[key] = group
			groups = append(groups, nil)
		}
		groups[group] = append(groups[group], i)
	}
	return groups
}

// annotatePool writes notes on one pool in their order, in one request. An annotation without entries is removed. The
// annotations have several entries each, and other processes may write them, so the write uses the optimistic lock.
func (x *Executor) annotatePool(ctx context.Context, notes []poolNote) error {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: notes[0].pool, UID: types.UID(notes[0].uid)}}
	return x.change(ctx, pool, func() bool {
		changed := false
		for _, note := range notes {
			before := pool.Annotations[note.key]
			after := note.change(before)
			switch {
			case after == before:
				continue
			case after == "":
				delete(pool.Annotations, note.key)
			default:
				metav1.SetMetaDataAnnotation(&pool.ObjectMeta, note.key, after)
			}
			changed = true
		}
		return changed
	}, func(patch client.Patch) error { return x.Client.Patch(ctx, pool, patch) })
}
