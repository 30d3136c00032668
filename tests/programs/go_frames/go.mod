module frames

go 1.18
