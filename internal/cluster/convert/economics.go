package convert

import (
	"fmt"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// In the model an amount of zero is "what the run says", and a negative one is nothing: none stands for what a user
// wrote as zero.
const none = -1

// neverPays is the least saving, nano-USD per hour, of a pool whose economics cannot be read: nobody knows what its
// owner wanted, so that nothing is moved to save money. Sums of it stay within 64 bits.
const neverPays = 1_000_000 * model.Nano

// NodePrice reads what a node costs beyond its price, decimal USD per hour, in the unit and with the meaning of
// model.PoolSpec.NodePrice: of zero it makes a negative number.
func NodePrice(text string) (int64, error) { return money(text, karpv1.ParseNodePrice) }

// MovePrice reads what it costs to move a pod, decimal USD, as model.PoolSpec.MovePrice has it.
func MovePrice(text string) (int64, error) { return money(text, karpv1.ParseMovePrice) }

// MinSaving reads the least saving of a consolidation, decimal USD per hour, as model.PoolSpec.MinSaving has it.
func MinSaving(text string) (int64, error) { return money(text, karpv1.ParseMinSaving) }

// Payback reads the time over which a saving must exceed its price, as model.PoolSpec.Payback has it.
func Payback(text string) (time.Duration, error) { return span(text, karpv1.ParsePayback) }

// MinStay reads for how long what a consolidation did stands, as model.PoolSpec.MinStay has it.
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

// MaxSpotShare reads the greatest share of one type in one zone, percent, as model.PoolSpec.MaxSpotShare has it.
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

// addEconomics reads what the pool's annotations say about costs, and what is wrong with the first that cannot be read;
// the pool's condition ValidationSucceeded says the same.
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
