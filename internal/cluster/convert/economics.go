package convert

import (
	"fmt"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// none represents a zero that a user wrote: in the model an amount of zero means the default of the run, and a
// negative amount means zero.
const none = -1

// neverPays is the minimum saving, nano-USD per hour, of a pool whose economics cannot be parsed: its intent is
// unknown, so no pod is moved to save cost. Sums of it stay within 64 bits.
const neverPays = 1_000_000 * model.Nano

// NodePrice parses the price per node, decimal USD per hour, with the unit and meaning of model.PoolSpec.NodePrice:
// it returns a negative number for zero.
func NodePrice(text string) (int64, error) { return money(text, karpv1.ParseNodePrice) }

// MovePrice parses the price of moving a pod, decimal USD, for model.PoolSpec.MovePrice.
func MovePrice(text string) (int64, error) { return money(text, karpv1.ParseMovePrice) }

// MinSaving parses the minimum saving of a consolidation, decimal USD per hour, for model.PoolSpec.MinSaving.
func MinSaving(text string) (int64, error) { return money(text, karpv1.ParseMinSaving) }

// Payback parses the time over which a saving must exceed its price, for model.PoolSpec.Payback.
func Payback(text string) (time.Duration, error) { return span(text, karpv1.ParsePayback) }

// MinStay parses the time for which the result of a consolidation is kept, for model.PoolSpec.MinStay.
func MinStay(text string) (time.Duration, error) { return span(text, karpv1.ParseMinStay) }

func span(text string, parse func(string) (time.Duration, error)) (time.Duration, error) {
	d, err := parse(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q %w", text, err)
	case d == 0:
		return none, nil
	}
	return d, nil
}

// MaxSpotShare parses the largest share of one type in one zone, percent, for model.PoolSpec.MaxSpotShare.
func MaxSpotShare(text string) (int64, error) {
	percent, err := karpv1.ParseMaxSpotShare(text)
	if err != nil {
		return 0, fmt.Errorf("%q %w", text, err)
	}
	return percent, nil
}

func money(text string, parse func(string) (float64, error)) (int64, error) {
	usd, err := parse(text)
	if err != nil {
		return 0, fmt.Errorf("%q %w", text, err)
	}
	if price, _ := nano(usd); price > 0 {
		return price, nil
	}
	return none, nil
}

// addEconomics parses the pool's annotations about costs, and returns a rejection for the first that is invalid. The
// pool's condition ValidationSucceeded reports the same problem.
func addEconomics(spec *model.PoolSpec, annotations map[string]string) *model.Rejection {
	var refused *model.Rejection
	read := func(name string, take func(text string) error) bool {
		text, has := annotations[name]
		if !has {
			return true
		}
		err := take(text)
		if err != nil && refused == nil {
			refused = refuse("metadata.annotations["+name+"]", "%v", err)
		}
		return err == nil
	}
	read(karpv1.AnnotationNodeOverheadPrice, func(text string) (err error) { spec.NodePrice, err = NodePrice(text); return err })
	known := read(karpv1.AnnotationPayback, func(text string) (err error) { spec.Payback, err = Payback(text); return err })
	known = read(karpv1.AnnotationMinStay, func(text string) (err error) { spec.MinStay, err = MinStay(text); return err }) && known
	known = read(karpv1.AnnotationMovePrice, func(text string) (err error) { spec.MovePrice, err = MovePrice(text); return err }) && known
	known = read(karpv1.AnnotationMinSaving, func(text string) (err error) { spec.MinSaving, err = MinSaving(text); return err }) && known
	known = read(karpv1.AnnotationMaxSpotShare, func(text string) (err error) { spec.MaxSpotShare, err = MaxSpotShare(text); return err }) && known
	if !known {
		spec.MinSaving = neverPays
	}
	return refused
}
