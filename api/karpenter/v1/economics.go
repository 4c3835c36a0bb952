package v1

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// The maximum values of a pool's consolidation annotations. Larger values are probably mistakes and could
// overflow the arithmetic.
const (
	maxPayback   = 365 * 24 * time.Hour
	maxNodePrice = 1e9 // USD per hour
	maxMovePrice = 1e3 // USD per unit of eviction cost
	maxMinSaving = 1e6 // USD per hour
)

// Errors of these functions state the expected format. They do not repeat the text.

// ParseNodePrice parses the value of AnnotationNodeOverheadPrice, in USD per hour.
func ParseNodePrice(text string) (float64, error) {
	return parseMoney(text, maxNodePrice, "USD per hour, zero or more, such as 0.005")
}

// ParseMovePrice parses the value of AnnotationMovePrice, in USD per unit of eviction cost. An ordinary pod has
// an eviction cost of one.
func ParseMovePrice(text string) (float64, error) {
	return parseMoney(text, maxMovePrice, "USD per pod that is moved, zero to 1000, such as 0.001")
}

// ParseMinSaving parses the value of AnnotationMinSaving, in USD per hour.
func ParseMinSaving(text string) (float64, error) {
	return parseMoney(text, maxMinSaving, "USD per hour, zero to 1000000, such as 0.01")
}

// ParsePayback parses the value of AnnotationPayback.
func ParsePayback(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxPayback {
		return 0, errors.New("is not such a time; it is a duration, zero to 8760h, such as 1h30m")
	}
	return d, nil
}

// ParseMinStay parses the value of AnnotationMinStay.
func ParseMinStay(text string) (time.Duration, error) { return ParsePayback(text) }

// parseRebalance checks the value of AnnotationRebalance.
func parseRebalance(text string) error {
	if text != RebalanceReplace {
		return errors.New("want " + RebalanceReplace + "; without the annotation, recommendations are only reported")
	}
	return nil
}

// ParseMaxSpotShare parses the value of AnnotationMaxSpotShare, in percent.
func ParseMaxSpotShare(text string) (int64, error) {
	percent, err := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
	if err != nil || percent < 1 || percent > 100 {
		return 0, errors.New("is not such a share; it is an integer of percent, 1 to 100, such as 25")
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
