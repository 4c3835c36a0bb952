package execute

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// pauseNote is a change of the pauses of a pool.
type pauseNote struct {
	pool, uid string
	change    func(pause.List) pause.List
}

// pauseNoteOf returns the action as a change of pauses, and false for other actions.
func pauseNoteOf(action plan.Action) (pauseNote, bool) {
	switch a := action.(type) {
	case plan.SetPause:
		return pauseNote{a.Pool, a.UID, func(l pause.List) pause.List { return l.With(a.Pause) }}, true
	case plan.EndPause:
		return pauseNote{a.Pool, a.UID, func(l pause.List) pause.List { return l.Without(a.Key) }}, true
	}
	return pauseNote{}, false
}

// together returns groups of actions that are each performed by one write, as indexes into the list. The notes on one
// pool form one group, because separate writes would conflict. Each other action forms its own group.
func together(actions []plan.Action) [][]int {
	var groups [][]int
	at := map[[2]string]int{}
	for i, action := range actions {
		note, is := pauseNoteOf(action)
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

// annotatePool changes the pauses of one pool, in one request. Without pauses, the annotation is removed. Other processes
// may write it, so the write uses the optimistic lock.
func (x *Executor) annotatePool(ctx context.Context, notes []pauseNote) error {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: notes[0].pool, UID: types.UID(notes[0].uid)}}
	return x.change(ctx, pool, func() bool {
		before := pool.Annotations[karpv1.AnnotationPauses]
		list := pause.Parse(before)
		for _, note := range notes {
			list = note.change(list)
		}
		after := list.Text()
		if after == "" {
			delete(pool.Annotations, karpv1.AnnotationPauses)
		} else {
			metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.AnnotationPauses, after)
		}
		return after != before
	}, func(patch client.Patch) error { return x.Client.Patch(ctx, pool, patch) })
}
