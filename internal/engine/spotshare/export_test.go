package spotshare

// RestsOf returns how many remainders the slots of spot bins have.
var RestsOf = restsOf
