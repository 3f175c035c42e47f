"""Where stored releases go: files, standard output, web addresses; at least once, in order, the stored bytes."""
