"""Operations under Darshan, and Darshan's shutdown."""
