package v1

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// The largest amounts that the economic annotations of a pool may have; more is taken for a slip, and would not fit
// the arithmetic.
const (
	maxPayback   = 365 * 24 * time.Hour
	maxNodePrice = 1e9 // USD per hour
	maxMovePrice = 1e3 // USD per unit of eviction cost
	maxMinSaving = 1e6 // USD per hour
)

// The errors of these functions say of the text what it should have been; they do not repeat it.

// ParseNodePrice reads the value of AnnotationNodeOverheadPrice, USD per hour.
func ParseNodePrice(text string) (float64, error) {
	return parseMoney(text, maxNodePrice, "USD per hour, zero or more, such as 0.005")
}

// ParseMovePrice reads the value of AnnotationMovePrice, USD per unit of eviction cost: an ordinary pod costs one.
func ParseMovePrice(text string) (float64, error) {
	return parseMoney(text, maxMovePrice, "USD per pod that is moved, zero to 1000, such as 0.001")
}

// ParseMinSaving reads the value of AnnotationMinSaving, USD per hour.
func ParseMinSaving(text string) (float64, error) {
	return parseMoney(text, maxMinSaving, "USD per hour, zero to 1000000, such as 0.01")
}

// ParsePayback reads the value of AnnotationPayback.
func ParsePayback(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxPayback {
		return 0, errors.New("is not such a time; it is a duration, zero to 8760h, such as 1h30m")
	}
	return d, nil
}

// ParseMinStay reads the value of AnnotationMinStay.
func ParseMinStay(text string) (time.Duration, error) { return ParsePayback(text) }

// ParseMaxSpotShare reads the value of AnnotationMaxSpotShare, percent.
func ParseMaxSpotShare(text string) (int64, error) {
	percent, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
	if err != nil || percent < 1 || percent > 100 {
		return 0, errors.New("is not such a share; it is a whole number of percent, 1 to 100, such as 25")
	}
	return percent, nil
}

func parseMoney(text string, most float64, is string) (float64, error) {
	usd, err := strconv.ParseFloat(text, 64)
	if err != nil || !(usd >= 0) || usd > most {
		return 0, errors.New("is not a price; it is " + is)
	}
	return usd, nil
}
