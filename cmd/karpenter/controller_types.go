package main

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
)

// typeless reports which of a pool's requirements leaves it without an instance type, in the same words as everywhere
// else. An answer is cached until the pool changes, or its provider has other types for it.
type typeless struct {
	provider   cloud.Provider
	vocabulary *convert.Vocabulary

	mu      sync.Mutex
	seed    maphash.Seed
	answers map[types.UID]typelessAnswer
}

type typelessAnswer struct {
	generation int64
	types      uint64
	why        string
}

// mostAnswers is the maximum number of cached answers. Answers of deleted pools are never read again.
const mostAnswers = 10_000

func newTypeless(provider cloud.Provider, vocabulary *convert.Vocabulary) *typeless {
	return &typeless{provider: provider, vocabulary: vocabulary, seed: maphash.MakeSeed(), answers: map[types.UID]typelessAnswer{}}
}

// why returns "" for a pool that has types, and if the provider does not list types.
func (t *typeless) why(ctx context.Context, pool *karpv1.NodePool) string {
	catalog, err := t.provider.Catalog(ctx, pool)
	if none := new(cloud.NoTypesError); errors.As(err, &none) {
		return none.Error()
	}
	if err != nil || len(catalog) == 0 {
		return ""
	}
	var names maphash.Hash
	names.SetSeed(t.seed)
	for i := range catalog {
		names.WriteString(catalog[i].Name)
		names.WriteByte(0)
		for k := range catalog[i].Offerings { // the answer depends on zones and capacity types too
			names.WriteString(catalog[i].Offerings[k].Zone)
			names.WriteByte(1)
			names.WriteString(catalog[i].Offerings[k].CapacityType)
			names.WriteByte(2)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	answer, known := t.answers[pool.UID]
	if known && answer.generation == pool.Generation && answer.types == names.Sum64() {
		return answer.why
	}
	if len(t.answers) >= mostAnswers {
		clear(t.answers)
	}
	snap := convert.Alone(pool, catalog, t.vocabulary)
	answer = typelessAnswer{pool.Generation, names.Sum64(), explain.NoTypes(snap, snap.Pools[0])}
	t.answers[pool.UID] = answer
	return answer.why
}
